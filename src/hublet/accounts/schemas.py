"""Wire schemas that all parts of accounts share, and the response of `whoami`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, WithJsonSchema

from hublet.accounts import names, passwords
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Member, OrganizationPlan, User
from hublet.core.database import Row
from hublet.core.schema import ObjectId, Schema, Timestamp

PlanName = Literal["team", "enterprise", "plus"]
RoleName = Literal["admin", "write", "contributor", "read"]
UserTypeName = Literal["user", "service-account"]

# The description tells the shape; `names` and `passwords` hold the rules and say their sentences.
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


class Entity(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    type: Literal["user", "org"]
    name: str


class ScopedGrant(Schema):
    entity: Entity
    permissions: list[str]


class FineGrained(Schema):
    everywhere: Annotated[list[str], Field(alias="global")]
    scoped: list[ScopedGrant]
    canReadGatedRepos: bool


class AccessToken(Schema):
    displayName: str
    role: Literal["read", "write", "fineGrained"]
    createdAt: Timestamp
    fineGrained: FineGrained | MISSING = MISSING


class Auth(Schema):
    type: Literal["access_token"]
    # Absent for OAuth tokens: the public CLI then stores the token under the user's name.
    accessToken: AccessToken | MISSING = MISSING
    expiresAt: Timestamp | MISSING = MISSING


class WhoamiOrganization(Schema):
    type: Literal["org"]
    id: ObjectId
    name: str
    fullname: str
    avatarUrl: str
    roleInOrg: RoleName
    plan: PlanName | MISSING = MISSING


class Whoami(Schema):
    type: UserTypeName
    id: ObjectId
    name: str
    fullname: str
    avatarUrl: str
    isPro: bool
    # Shown to tokens with the scope email.
    email: str | MISSING | None = MISSING
    emailVerified: bool | MISSING = MISSING
    # Shown to tokens with the scope read-billing.
    canPay: bool | MISSING = MISSING
    # Empty for tokens without the scope read-memberships.
    orgs: list[WhoamiOrganization]
    auth: Auth


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
    """Return how many repositories somebody has, by their type, as overviews name them."""
    types = {"Models": "model", "Datasets": "dataset", "Spaces": "space"}
    return {f"num{name}": repos.get(type_, 0) for name, type_ in types.items()}


class AvatarUrl(Schema):
    avatarUrl: str


# The public clients' word for the largest plan; the free plan is not shown at all.
WIRE_PLANS = {
    OrganizationPlan.team.value: "team",
    OrganizationPlan.enterprise.value: "enterprise",
    OrganizationPlan.enterprise_plus.value: "plus",
}


def render_whoami(
    rows: Sequence[Row], *, base_url: str, scopes: frozenset[str], auth: object
) -> dict[str, Any]:
    """Show the user of these rows (one per membership) as far as the scopes reach."""
    user = rows[0]
    answer: dict[str, Any] = {
        "type": user["type"],
        "id": user["id"],
        "name": user["name"],
        "fullname": user["fullname"],
        "avatarUrl": avatar_url(base_url, user["id"]),
        "isPro": False,
        "orgs": [],
        "auth": auth,
    }
    if "email" in scopes:
        answer["email"] = user["email"]
        answer["emailVerified"] = user["email_verified_at"] is not None
    if "read-billing" in scopes:
        answer["canPay"] = False
    if "read-memberships" in scopes:
        answer["orgs"] = [
            _render_whoami_organization(row, base_url)
            for row in rows
            if row["organization_id"] is not None
        ]
    return answer


def _render_whoami_organization(row: Row, base_url: str) -> dict[str, Any]:
    shown = {
        "type": "org",
        "id": row["organization_id"],
        "name": row["organization_name"],
        "fullname": row["organization_fullname"],
        "avatarUrl": avatar_url(base_url, row["organization_id"]),
        "roleInOrg": row["role"],
    }
    if plan := WIRE_PLANS.get(row["plan"]):
        shown["plan"] = plan
    return shown
