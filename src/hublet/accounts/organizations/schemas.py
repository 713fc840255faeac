"""Wire schemas of organizations, their invitations, audit log and service accounts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.accounts import records
from hublet.accounts.avatars import avatar_url
from hublet.accounts.records import Member, NetworkAuthentication, Role
from hublet.accounts.schemas import (
    WIRE_PLANS,
    AccountName,
    EmailAddress,
    MemberCard,
    PlanName,
    RoleName,
    repo_counts,
)
from hublet.core.schema import Flag, Line, ObjectId, Schema, Timestamp

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


class AuditAuthor(Schema):
    id: Annotated[ObjectId | MISSING, Field(alias="_id")] = MISSING
    user: str
    avatarUrl: str | MISSING = MISSING
    type: Literal["user", "system"]


class AuditEvent(Schema):
    """A line of the audit log as the public service exports it."""

    id: Annotated[ObjectId, Field(alias="_id")]
    createdAt: Timestamp
    type: str
    message: str
    data: dict[str, Any]
    ip: str | MISSING = MISSING
    author: AuditAuthor

    @classmethod
    def of(cls, line: records.AuditEntry, *, base_url: str) -> Self:
        author: dict[str, Any] = {"user": line.actor_name, "type": "system"}
        if line.actor_id is not None:
            author |= {
                "_id": line.actor_id,
                "avatarUrl": avatar_url(base_url, line.actor_id),
                "type": "user",
            }
        return cls.model_validate(
            {
                "_id": line.id,
                "createdAt": line.at,
                "type": line.action,
                "message": f"{line.actor_name}: {line.action} {line.target}",
                "data": {"target": line.target, **line.details},
                "ip": line.address or MISSING,
                "author": author,
            }
        )


AnyRoleName = Literal["admin", "write", "contributor", "read", "no_access"]


class GroupRole(Schema):
    id: ObjectId
    role: AnyRoleName


class SetMemberRole(Schema):
    role: AnyRoleName
    resourceGroups: Annotated[list[GroupRole], Field(max_length=100)] | MISSING = MISSING


class MemberGroup(Schema):
    id: ObjectId
    name: str
    numUsers: int
    role: RoleName


class ListedMember(MemberCard):
    # For administrators only, as the following are.
    resourceGroups: list[MemberGroup] | MISSING = MISSING
    # The primary address, when it is verified.
    verifiedEmail: str | MISSING | None = MISSING

    @classmethod
    def with_details(
        cls,
        member: Member,
        groups: Sequence[tuple[records.GroupMembership, int]],
        address: str | None,
        *,
        base_url: str,
    ) -> Self:
        card = MemberCard.of_member(member, base_url=base_url).model_dump(by_alias=True)
        listed = [
            {"id": group.group_id, "name": group.group_name, "numUsers": count, "role": group.role}
            for group, count in groups
        ]
        return cls.model_validate(card | {"resourceGroups": listed, "verifiedEmail": address})


class ContentRule(Schema):
    resource: str
    scope: str


class NetworkSettings(Schema):
    """Networks of an organization. Rules for contents and rates of the public service are not here."""

    # `pending` until an administrator of the hub agrees.
    enforceAuth: bool | Literal["pending"]
    enforceIpRestriction: bool
    highRateLimits: bool = False
    ipRanges: list[str]
    blockedContents: Annotated[list[ContentRule], Field(default_factory=list)]
    allowedContents: Annotated[list[ContentRule], Field(default_factory=list)]
    keepReposMetadataVisible: bool = True

    @classmethod
    def of(cls, networks: records.NetworkSecurity) -> Self:
        wire = {NetworkAuthentication.no: False, NetworkAuthentication.yes: True}
        return cls.model_validate(
            {
                "enforceAuth": wire.get(networks.authentication, "pending"),
                "enforceIpRestriction": networks.is_restricted,
                "ipRanges": [str(each) for each in networks.ip_ranges],
            }
        )


class UpdateNetworkSettings(Schema):
    # Whether requests from these networks need a token; it waits for an administrator of the hub.
    enforceAuth: Flag | MISSING = MISSING
    # Whether members reach the organization from these networks alone.
    enforceIpRestriction: Flag | MISSING = MISSING
    # In CIDR notation, of IPv4 and IPv6.
    ipRanges: list[str] | MISSING = MISSING
    # What this hub does not do is taken as long as it asks for nothing.
    highRateLimits: Literal[False] | MISSING = MISSING
    blockedContents: Annotated[list[ContentRule], Field(max_length=0)] | MISSING = MISSING
    allowedContents: Annotated[list[ContentRule], Field(max_length=0)] | MISSING = MISSING
    keepReposMetadataVisible: Literal[True] | MISSING = MISSING


class ListedEmailDomain(Schema):
    domain: str
    role: RoleName
    createdAt: Timestamp

    @classmethod
    def of(cls, domain: records.EmailDomain) -> Self:
        return cls.model_validate(
            {"domain": domain.domain, "role": domain.role, "createdAt": domain.created_at}
        )


class SetEmailDomain(Schema):
    role: Literal["read", "contributor", "write"] = "read"


class RequestToJoin(Schema):
    message: Annotated[str, Field(max_length=500)] = ""


class JoinStatus(Schema):
    status: Literal["member", "pending"]


class OpenJoinRequest(Schema):
    id: ObjectId
    user: str
    fullname: str
    message: str
    createdAt: Timestamp

    @classmethod
    def of(cls, request: records.JoinRequest) -> Self:
        return cls.model_validate(
            {
                "id": request.id,
                "user": request.user.name,
                "fullname": request.user.fullname,
                "message": request.message,
                "createdAt": request.created_at,
            }
        )


class DeclineJoinRequest(Schema):
    reason: Annotated[str, Field(max_length=500)] = ""


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
