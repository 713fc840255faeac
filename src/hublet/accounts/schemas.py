"""Wire schemas that all parts of accounts share."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, WithJsonSchema

from hublet.accounts import names, passwords
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Member, Organization, OrganizationPlan, User
from hublet.core.schema import ObjectId, Schema

PlanName = Literal["team", "enterprise", "plus"]
RoleName = Literal["admin", "write", "contributor", "read"]
UserTypeName = Literal["user", "service-account"]

# The public clients' word for the largest plan; the free plan is not shown at all.
WIRE_PLANS = {
    OrganizationPlan.team.value: "team",
    OrganizationPlan.enterprise.value: "enterprise",
    OrganizationPlan.enterprise_plus.value: "plus",
}

# The description shows the shape; `names` and `passwords` check the rules and word the errors.
AccountName = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "minLength": names.MIN_LENGTH,
            "maxLength": names.MAX_LENGTH,
            "pattern": "^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$",
        }
    ),
]
EmailAddress = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "email", "maxLength": names.MAX_EMAIL_LENGTH}),
]
NewPassword = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "minLength": passwords.MIN_LENGTH,
            "maxLength": passwords.MAX_LENGTH,
        }
    ),
]


class UserCard(Schema):
    """A user in a list."""

    id: Annotated[ObjectId, Field(alias="_id")]
    user: str
    fullname: str
    avatarUrl: str
    isPro: bool
    type: UserTypeName

    @classmethod
    def of(cls, user: User, *, base_url: str) -> Self:
        return cls.model_validate(_user_card(user, base_url))


class MemberCard(UserCard):
    """A user in a list of members, with the role there."""

    role: RoleName

    @classmethod
    def of_member(cls, member: Member, *, base_url: str) -> Self:
        return cls.model_validate(_user_card(member.user, base_url) | {"role": member.role})


def _user_card(user: User, base_url: str) -> dict[str, Any]:
    return {
        "_id": user.id,
        "user": user.name,
        "fullname": user.fullname,
        "avatarUrl": avatar_url(base_url, user.id),
        "isPro": False,
        "type": user.type,
    }


def repo_counts(repos: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of repositories by type, under the names of an overview."""
    types = {"Models": "model", "Datasets": "dataset", "Spaces": "space"}
    return {f"num{name}": repos.get(type_, 0) for name, type_ in types.items()}


class AvatarUrl(Schema):
    avatarUrl: str


Handle = Annotated[str, Field(max_length=200)]


class OrganizationHandles(Schema):
    """Handles in other networks: the name there, not the address."""

    twitter: Handle | MISSING = MISSING
    github: Handle | MISSING = MISSING
    linkedin: Handle | MISSING = MISSING

    def given(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class UserHandles(OrganizationHandles):
    bluesky: Handle | MISSING = MISSING


class UserSocials(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    user: str
    socialHandles: UserHandles

    @classmethod
    def of(cls, user: User, handles: Mapping[str, str]) -> Self:
        return cls.model_validate(
            {"_id": user.id, "user": user.name, "socialHandles": dict(handles)}
        )


class OrganizationSocials(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    org: str
    socialHandles: OrganizationHandles

    @classmethod
    def of(cls, organization: Organization, handles: Mapping[str, str]) -> Self:
        return cls.model_validate(
            {"_id": organization.id, "org": organization.name, "socialHandles": dict(handles)}
        )


class FollowedOrganization(Schema):
    """An organization in a list."""

    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str
    type: Literal["org"] = "org"

    @classmethod
    def of(cls, organization: Organization, *, base_url: str) -> Self:
        return cls.model_validate(
            {
                "_id": organization.id,
                "name": organization.name,
                "fullname": organization.fullname,
                "avatarUrl": avatar_url(base_url, organization.id),
            }
        )
