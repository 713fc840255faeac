"""Organizations on the wire."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts import records
from hublet.accounts.avatars import avatar_url
from hublet.accounts.schemas import AccountName, PlanName, repo_counts
from hublet.accounts.whoami import PLAN_ON_THE_WIRE
from hublet.core.schema import Line, ObjectId, Schema, Timestamp


class CreateOrganization(Schema):
    name: AccountName
    fullname: Line | MISSING = MISSING


class UpdateOrganization(Schema):
    fullname: Line | MISSING = MISSING


class SetMember(Schema):
    role: records.Role


class OrganizationOverview(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str
    type: Literal["org"] = "org"
    isVerified: bool = False
    # Absent on the free plan.
    plan: PlanName | MISSING = MISSING
    createdAt: Timestamp
    numUsers: int
    numFollowers: int
    # What everybody may see.
    numModels: int
    numDatasets: int
    numSpaces: int
    # Whether the holder of the token follows this organization; absent without a token.
    isFollowing: bool | MISSING = MISSING

    @classmethod
    def of(
        cls,
        organization: records.Organization,
        *,
        base_url: str,
        members: int,
        repos: Mapping[str, int],
        followers: int,
        is_following: bool | None,
    ) -> Self:
        return cls.model_validate(
            {
                "_id": organization.id,
                "name": organization.name,
                "fullname": organization.fullname,
                "avatarUrl": avatar_url(base_url, organization.id),
                "plan": PLAN_ON_THE_WIRE.get(organization.plan, MISSING),
                "createdAt": organization.created_at,
                "numUsers": members,
                **repo_counts(repos),
                "numFollowers": followers,
                "isFollowing": MISSING if is_following is None else is_following,
            }
        )
