"""Facts about organizations, their members and what belongs to them."""

from hublet.core.light_dataclasses import dataclass
from hublet.core.outbox import Event


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
