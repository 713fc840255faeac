"""Wire schemas of resource groups."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.accounts import records
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Member
from hublet.accounts.schemas import AccountName, MemberCard, RoleName, UserTypeName
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


GroupRoleName = Literal["admin", "write", "contributor", "read"]


class AutoJoinOn(Schema):
    enabled: Literal[True]
    role: GroupRoleName
    # Every member may read here: both are all members.
    scope: Literal["all", "read_plus"] = "all"


class AutoJoinOff(Schema):
    enabled: Literal[False]


class GroupSettings(Schema):
    autoJoin: AutoJoinOn | AutoJoinOff


class NewGroupUser(Schema):
    # One of the two: the name of a member of the organization.
    user: AccountName | MISSING = MISSING
    name: AccountName | MISSING = MISSING
    role: GroupRoleName


class AddGroupUsers(Schema):
    users: Annotated[list[NewGroupUser], Field(min_length=1, max_length=100)]


class SetGroupRole(Schema):
    role: GroupRoleName


class GroupUser(Schema):
    type: UserTypeName
    id: Annotated[ObjectId, Field(alias="_id")]
    name: str
    fullname: str
    avatarUrl: str
    role: RoleName


class GroupResource(Schema):
    type: str
    name: str
    private: bool


class GroupContent(Schema):
    """A resource group with its members and repositories, as the public service shows it."""

    id: ObjectId
    name: str
    description: str
    autoJoin: AutoJoinOn | AutoJoinOff
    users: list[GroupUser]
    resources: list[GroupResource]

    @classmethod
    def of(
        cls,
        group: records.ResourceGroupRecord,
        members: Sequence[Member],
        repos: Sequence[Mapping[str, Any]],
        *,
        base_url: str,
    ) -> Self:
        join: dict[str, Any] = {"enabled": False}
        if group.auto_join_role is not None:
            scope = group.auto_join_scope or "all"
            join = {"enabled": True, "role": group.auto_join_role, "scope": scope}
        return cls.model_validate(
            {
                "id": group.id,
                "name": group.name,
                "description": group.description,
                "autoJoin": join,
                "users": [_group_user(member, base_url) for member in members],
                "resources": [
                    {
                        "type": repo["type"],
                        "name": f"{repo['owner_name']}/{repo['name']}",
                        "private": repo["visibility"] != "public",
                    }
                    for repo in repos
                ],
            }
        )


def _group_user(member: Member, base_url: str) -> dict[str, Any]:
    user = member.user
    return {
        "type": user.type,
        "_id": user.id,
        "name": user.name,
        "fullname": user.fullname,
        "avatarUrl": avatar_url(base_url, user.id),
        "role": member.role,
    }
