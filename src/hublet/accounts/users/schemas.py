"""Wire schemas of public user profiles, and of `whoami`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Membership, User
from hublet.accounts.schemas import (
    WIRE_PLANS,
    PlanName,
    RoleName,
    UserCard,
    UserTypeName,
    repo_counts,
)
from hublet.core.database import Row
from hublet.core.schema import ObjectId, Schema, Timestamp


class OrganizationCard(Schema):
    """An organization in the list of those a user belongs to."""

    id: ObjectId
    name: str
    fullname: str
    avatarUrl: str


class UserOverview(UserCard):
    createdAt: Timestamp
    # Of public repositories and public likes only.
    numModels: int
    numDatasets: int
    numSpaces: int
    numLikes: int
    # Zero until the hub has what they count.
    numDiscussions: int = 0
    numPapers: int = 0
    numUpvotes: int = 0
    numFollowers: int
    numFollowing: int
    # Whether the holder of the token follows this user; absent without a token.
    isFollowing: bool | MISSING = MISSING
    orgs: list[OrganizationCard]

    @classmethod
    def of_user(  # noqa: PLR0913 - an overview has as many parts, all named by the caller
        cls,
        user: User,
        *,
        base_url: str,
        memberships: Sequence[Membership],
        counts: Mapping[str, int],
        followers: int,
        following: int,
        is_following: bool | None,
    ) -> Self:
        return cls.model_validate(
            {
                **UserCard.of(user, base_url=base_url).model_dump(by_alias=True),
                "createdAt": user.created_at,
                **repo_counts(counts),
                "numLikes": counts["like"],
                "numFollowers": followers,
                "numFollowing": following,
                "isFollowing": MISSING if is_following is None else is_following,
                "orgs": [_organization_card(membership, base_url) for membership in memberships],
            }
        )


def _organization_card(membership: Membership, base_url: str) -> OrganizationCard:
    organization = membership.organization
    return OrganizationCard(
        id=organization.id,
        name=organization.name,
        fullname=organization.fullname,
        avatarUrl=avatar_url(base_url, organization.id),
    )


class Entity(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    # A repository for the token of a trusted publisher.
    type: Literal["user", "org", "model", "dataset", "space", "kernel", "bucket", "container"]
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


def render_whoami(
    rows: Sequence[Row], *, base_url: str, scopes: frozenset[str], auth: object
) -> dict[str, Any]:
    """Render the user of these rows (one per membership) as far as the scopes reach."""
    user = rows[0]
    body: dict[str, Any] = {
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
        body["email"] = user["email"]
        body["emailVerified"] = user["email_verified_at"] is not None
    if "read-billing" in scopes:
        body["canPay"] = False
    if "read-memberships" in scopes:
        body["orgs"] = [
            _render_whoami_organization(row, base_url)
            for row in rows
            if row["organization_id"] is not None
        ]
    return body


def _render_whoami_organization(row: Row, base_url: str) -> dict[str, Any]:
    body = {
        "type": "org",
        "id": row["organization_id"],
        "name": row["organization_name"],
        "fullname": row["organization_fullname"],
        "avatarUrl": avatar_url(base_url, row["organization_id"]),
        "roleInOrg": row["role"],
    }
    if plan := WIRE_PLANS.get(row["plan"]):
        body["plan"] = plan
    return body
