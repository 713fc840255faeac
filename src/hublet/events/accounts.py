"""Events of users, organizations and resource groups."""

from hublet.core.dataclasses import dataclass
from hublet.core.outbox import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCreated(Event):
    """A person's account was created."""

    kind = "user.created"
    user_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDisabled(Event):
    """An account was switched off: none of its credentials works any more."""

    kind = "user.disabled"
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEnabled(Event):
    """A disabled account was switched on again, with the credentials it had."""

    kind = "user.enabled"
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordChanged(Event):
    """A password was set, by its owner or by an administrator."""

    kind = "user.password-changed"
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserUpdated(Event):
    """A user's full name or picture changed."""

    kind = "user.updated"
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdministratorChanged(Event):
    """A user became a hub administrator, or is none any more."""

    kind = "user.administrator-changed"
    user_id: str
    is_admin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailAdded(Event):
    """An e-mail address, not verified yet, was added to an account by its owner."""

    kind = "user.email-added"
    user_id: str
    email_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailVerified(Event):
    """Somebody followed the link in a mail, so an e-mail address is theirs; perhaps once more."""

    kind = "user.email-verified"
    user_id: str
    email_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailRemoved(Event):
    """An e-mail address was removed from an account."""

    kind = "user.email-removed"
    user_id: str
    email_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryEmailChanged(Event):
    """Another e-mail address of an account became the primary one."""

    kind = "user.primary-email-changed"
    user_id: str
    email_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SshKeyAdded(Event):
    """An SSH key was added to an account."""

    kind = "user.ssh-key-added"
    user_id: str
    key_id: str
    title: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SshKeyRemoved(Event):
    """An SSH key was removed from an account."""

    kind = "user.ssh-key-removed"
    user_id: str
    key_id: str
    title: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFollowed(Event):
    """Somebody began to follow a user or an organization."""

    kind = "user.followed"
    follower_id: str
    account_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationCreated(Event):
    """An organization was created."""

    kind = "organization.created"
    organization_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationUpdated(Event):
    """An organization's full name or picture changed."""

    kind = "organization.updated"
    organization_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationPlanChanged(Event):
    """An organization moved to another plan."""

    kind = "organization.plan-changed"
    organization_id: str
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAdded(Event):
    """A user joined an organization; without an `actor_id` it was a command that added them."""

    kind = "organization.member-added"
    organization_id: str
    user_id: str
    role: str
    actor_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequested(Event):
    """A user asked to join an organization; `message` is what they wrote, or empty."""

    kind = "organization.join-requested"
    organization_id: str
    user_id: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequestDeclined(Event):
    """An administrator declined a request to join; `reason` is what they wrote, or empty."""

    kind = "organization.join-request-declined"
    organization_id: str
    user_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRoleChanged(Event):
    """A member's role in an organization changed."""

    kind = "organization.member-role-changed"
    organization_id: str
    user_id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRemoved(Event):
    """A user left an organization or was removed from it."""

    kind = "organization.member-removed"
    organization_id: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountCreated(Event):
    """An organization got an account for a program."""

    kind = "organization.service-account-created"
    organization_id: str
    user_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupCreated(Event):
    """An organization got a resource group."""

    kind = "resource-group.created"
    organization_id: str
    resource_group_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupUpdated(Event):
    """A resource group's name or description changed."""

    kind = "resource-group.updated"
    organization_id: str
    resource_group_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupDeleted(Event):
    """A resource group was deleted."""

    kind = "resource-group.deleted"
    organization_id: str
    resource_group_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupMemberSet(Event):
    """A member of the organization joined a resource group, or got another role in it."""

    kind = "resource-group.member-set"
    organization_id: str
    resource_group_id: str
    user_id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupMemberRemoved(Event):
    """A user left a resource group or was removed from it."""

    kind = "resource-group.member-removed"
    organization_id: str
    resource_group_id: str
    user_id: str
