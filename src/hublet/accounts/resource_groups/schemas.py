"""Wire schemas of resource groups."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import MISSING, StringConstraints

from hublet.accounts import records
from hublet.accounts.records import Member
from hublet.accounts.schemas import MemberCard
from hublet.core.schema import ObjectId, Schema, Timestamp

GroupName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]
GroupDescription = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]


class CreateResourceGroup(Schema):
    name: GroupName
    description: GroupDescription = ""


class UpdateResourceGroup(Schema):
    name: GroupName | MISSING = MISSING
    description: GroupDescription | MISSING = MISSING


class ResourceGroup(Schema):
    id: ObjectId
    name: str
    description: str
    createdAt: Timestamp

    @classmethod
    def of(cls, group: records.ResourceGroupRecord) -> Self:
        return cls(
            id=group.id,
            name=group.name,
            description=group.description,
            createdAt=group.created_at,
        )


class ResourceGroupDetails(ResourceGroup):
    members: list[MemberCard]

    @classmethod
    def with_members(
        cls, group: records.ResourceGroupRecord, members: Sequence[Member], *, base_url: str
    ) -> Self:
        return cls(
            **ResourceGroup.of(group).model_dump(),
            members=[MemberCard.of_member(member, base_url=base_url) for member in members],
        )
