"""Records of users, organizations, resource groups, SSH keys, avatars and the audit log."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.core.light_dataclasses import dataclass


class OrganizationPlan(StrEnum):
    free = "free"
    team = "team"
    enterprise = "enterprise"
    enterprise_plus = "enterprise-plus"

    @property
    def has_resource_groups(self) -> bool:
        # Interface 1: resource groups are a Team or Enterprise feature.
        return self is not OrganizationPlan.free

    @property
    def has_service_accounts(self) -> bool:
        return self in {OrganizationPlan.enterprise, OrganizationPlan.enterprise_plus}


class Role(StrEnum):
    """A member's role; each one may do what those before it may."""

    read = "read"
    contributor = "contributor"
    write = "write"
    admin = "admin"

    def covers(self, needed: "Role") -> bool:
        return _RANK[self] >= _RANK[needed]


_RANK = {role: rank for rank, role in enumerate(Role)}


class UserType(StrEnum):
    person = "user"
    service = "service-account"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    id: str
    name: str
    fullname: str
    type: UserType = UserType.person
    organization_id: str | None = None
    is_admin: bool = False
    created_at: datetime
    disabled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEmail:
    id: str
    user_id: str
    address: str
    is_primary: bool
    created_at: datetime
    verified_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    id: str
    name: str
    fullname: str
    plan: OrganizationPlan
    created_at: datetime


class OwnerType(StrEnum):
    user = "user"
    organization = "org"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A user or an organization, as the owner of repositories, jobs, webhooks and threads."""

    id: str
    name: str
    type: OwnerType

    @property
    def is_organization(self) -> bool:
        return self.type is OwnerType.organization


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A user's place in an organization."""

    organization: Organization
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A user in an organization's list of members."""

    user: User
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who did something, as the audit log keeps it: a name stays readable after a rename."""

    id: str | None
    name: str
    address: str | None = None


# Commands run on the machine itself, by somebody who can read the data folder.
OPERATOR = Actor(id=None, name="operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupRecord:
    """A part of an organization with members and rules of its own."""

    id: str
    organization_id: str
    name: str
    description: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: str
    organization_id: str
    actor_id: str | None
    actor_name: str
    # Dotted, past the dot what was done: `member.add`.
    action: str
    # The name of what it was done to.
    target: str
    details: dict[str, Any]
    address: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which lines are asked for; what is empty lets everything through."""

    action: str = ""
    actor: str = ""
    # In microseconds: from this moment on, and before that one.
    since: int = -(2**62)
    until: int = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSshKey:
    id: str
    user_id: str
    title: str
    type: str
    # The public key in base64, without its type in front.
    data: str
    fingerprint: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarImage:
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAvatar:
    """Whose picture it is, and the uploaded one if there is one to show."""

    name: str
    upload: AvatarImage | None
