"""Wire schemas of public user profiles."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import MISSING

from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Membership, User
from hublet.accounts.schemas import UserCard, repo_counts
from hublet.core.schema import ObjectId, Schema, Timestamp


class OrganizationCard(Schema):
    """An organization in the list of those a user belongs to."""

    id: ObjectId
    name: str
    fullname: str
    avatarUrl: str


class UserOverview(UserCard):
    createdAt: Timestamp
    # What everybody may see.
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
