"""Wire schemas of organizations, their invitations, audit log and service accounts."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts import records
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Member, Role
from hublet.accounts.schemas import (
    WIRE_PLANS,
    AccountName,
    EmailAddress,
    PlanName,
    RoleName,
    repo_counts,
)
from hublet.core.schema import Line, ObjectId, Schema, Timestamp

DefaultVisibilityName = Literal["public", "private"]


class CreateOrganization(Schema):
    name: AccountName
    fullname: Line | MISSING = MISSING


class UpdateOrganization(Schema):
    fullname: Line | MISSING = MISSING
    # Of new repositories, buckets and containers, when their creator does not say.
    defaultVisibility: DefaultVisibilityName | MISSING = MISSING


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
    # Of public repositories only.
    numModels: int
    numDatasets: int
    numSpaces: int
    # Whether the holder of the token follows this organization; absent without a token.
    isFollowing: bool | MISSING = MISSING
    # Of new repositories, when their creator does not say; shown to members only.
    defaultVisibility: DefaultVisibilityName | MISSING = MISSING

    @classmethod
    def of(  # noqa: PLR0913 - each is a part of what is shown
        cls,
        organization: records.Organization,
        *,
        base_url: str,
        members: int,
        repos: Mapping[str, int],
        followers: int,
        is_following: bool | None,
        to_member: bool,
    ) -> Self:
        return cls.model_validate(
            {
                "_id": organization.id,
                "name": organization.name,
                "fullname": organization.fullname,
                "avatarUrl": avatar_url(base_url, organization.id),
                "plan": WIRE_PLANS.get(organization.plan, MISSING),
                "createdAt": organization.created_at,
                "numUsers": members,
                **repo_counts(repos),
                "numFollowers": followers,
                "isFollowing": MISSING if is_following is None else is_following,
                "defaultVisibility": organization.default_visibility if to_member else MISSING,
            }
        )


class AuditActor(Schema):
    # Absent for those who are not users, such as the operator of the hub.
    id: ObjectId | MISSING = MISSING
    name: str


class AuditLine(Schema):
    id: ObjectId
    at: Timestamp
    action: str
    actor: AuditActor
    target: str
    details: dict[str, Any]
    # The address that the request came from; absent for commands on the machine itself.
    address: str | MISSING = MISSING

    @classmethod
    def of(cls, line: records.AuditEntry) -> Self:
        return cls.model_validate(
            {
                "id": line.id,
                "at": line.at,
                "action": line.action,
                "actor": {"id": line.actor_id or MISSING, "name": line.actor_name},
                "target": line.target,
                "details": line.details,
                "address": line.address or MISSING,
            }
        )


class CreateServiceAccount(Schema):
    name: AccountName
    role: Role
    fullname: Line | MISSING = MISSING


class ServiceAccount(Schema):
    id: ObjectId
    name: str
    fullname: str
    role: RoleName
    createdAt: Timestamp

    @classmethod
    def of(cls, account: Member) -> Self:
        return cls.model_validate(
            {
                "id": account.user.id,
                "name": account.user.name,
                "fullname": account.user.fullname,
                "role": account.role,
                "createdAt": account.user.created_at,
            }
        )


class InviteToHub(Schema):
    # Where the link is sent to, if the hub can send mails.
    email: EmailAddress | MISSING = MISSING


class InviteToOrganization(InviteToHub):
    role: Role = Role.read


class OpenInvitation(Schema):
    id: ObjectId
    # Absent for an invitation to the hub alone.
    role: RoleName | MISSING = MISSING
    email: str | MISSING = MISSING
    createdBy: str
    createdAt: Timestamp
    expiresAt: Timestamp

    @classmethod
    def of(cls, invitation: records.Invitation) -> Self:
        return cls.model_validate(
            {
                "id": invitation.id,
                "role": invitation.role or MISSING,
                "email": invitation.email or MISSING,
                "createdBy": invitation.creator_name,
                "createdAt": invitation.created_at,
                "expiresAt": invitation.expires_at,
            }
        )


class CreatedInvitation(Schema):
    """The one answer that holds the link: it cannot be shown again."""

    invitation: OpenInvitation
    link: str
