"""Records of users, organizations, invitations, resource groups, SSH keys, avatars and the audit log."""

from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

from hublet.core.dataclasses import dataclass


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

    @property
    def has_scim(self) -> bool:
        # Interface 5.1: SCIM is an Enterprise Plus feature.
        return self is OrganizationPlan.enterprise_plus


class DefaultVisibility(StrEnum):
    """Visibility of an organization's new repositories, when their creator does not say."""

    public = "public"
    private = "private"


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
    default_visibility: DefaultVisibility = DefaultVisibility.public


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
class Account(Owner):
    """An owner with its full name, as others see it; a disabled user still has a name."""

    fullname: str
    is_service_account: bool = False

    @property
    def wire_type(self) -> str:
        return UserType.service if self.is_service_account else self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The membership of a user in an organization."""

    organization: Organization
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembership:
    """The membership of a user in a resource group."""

    group_id: str
    group_name: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A user in an organization's list of members."""

    user: User
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """The request of a user to join an organization, which nobody has decided yet."""

    id: str
    user: User
    message: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who made a change, as the audit log stores it: by name, which outlives a rename."""

    id: str | None
    name: str
    address: str | None = None


# The actor of commands that run on the machine itself, with access to the data folder.
OPERATOR = Actor(id=None, name="operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link that lets somebody join the hub and, if it names one, an organization."""

    id: str
    organization_id: str | None
    role: Role | None
    # Where it was sent to, if it was.
    email: str | None
    # None for whoever runs the hub.
    creator_id: str | None
    creator_name: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGroupRecord:
    """A part of an organization with members and rules of its own."""

    id: str
    organization_id: str
    name: str
    description: str
    created_at: datetime
    # The role with which members of the organization join by themselves; None: they do not.
    auto_join_role: Role | None = None
    # Who does, in the public service's words: all, read_plus.
    auto_join_scope: str | None = None


IpRange = IPv4Network | IPv6Network


def is_within(address: str, ranges: tuple[IpRange, ...]) -> bool:
    """Tell whether an address lies in one of the networks; what is no address lies in none."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    # An IPv4 client of a socket for both families has an address such as ::ffff:192.0.2.1.
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in ranges)


class NetworkAuthentication(StrEnum):
    """Whether requests from an organization's networks need a token."""

    no = "no"
    # Until an administrator of the hub agrees: it binds everybody in these networks.
    pending = "pending"
    yes = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSecurity:
    """Networks of an organization, and what they are for."""

    ip_ranges: tuple[IpRange, ...] = ()
    # Whether members reach the organization from these networks alone.
    is_restricted: bool = False
    authentication: NetworkAuthentication = NetworkAuthentication.no


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationLimit:
    """An organization that a credential does not reach, or from some networks alone."""

    organization_id: str
    organization_name: str
    # Where it works; None: nowhere, since an administrator cut it off.
    ip_ranges: tuple[IpRange, ...] | None = None

    @property
    def sentence(self) -> str:
        name = self.organization_name or "the organization"
        if self.ip_ranges is None:
            return (
                f"Your token has been revoked by an administrator of {name}: "
                "it works elsewhere, but not there any more."
            )
        return f"{name} is only reached from its own networks, and your address is in none of them."


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailDomain:
    """A domain whose people may join an organization, and the role that they get."""

    domain: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: str
    organization_id: str
    actor_id: str | None
    actor_name: str
    # The kind of object and the verb, separated by a dot: `member.add`.
    action: str
    # The name of what it was done to.
    target: str
    details: dict[str, Any]
    address: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Filter of an audit log; an empty field matches every line."""

    # One action, as in `member.add`, or all of one kind of object, as in `member`.
    action: str = ""
    actor: str = ""
    # A part of the target's name or of the details.
    search: str = ""
    # The address that it was done from.
    address: str = ""
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
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AvatarImage:
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAvatar:
    """The name of an account, and its uploaded image if one may be shown."""

    name: str
    upload: AvatarImage | None
