"""Records of SCIM: the directory, its users and groups, and requests to it."""

from dataclasses import field
from unicodedata import normalize

from hublet.accounts.records import Actor, Organization, Role
from hublet.core.light_dataclasses import dataclass


def comparison_key(text: str) -> str:
    """Return the form in which two texts are the same where case does not count."""
    return normalize("NFC", normalize("NFC", text).lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The users and groups of one organization, of one kind, and who works on them."""

    organization: Organization
    # Whether the accounts of its users belong to the organization.
    managed: bool
    actor: Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedAddress:
    value: str
    primary: bool | None = None
    # Changes may name it; answers never do (interface 2.6).
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoles:
    """What somebody was in the organization, for when they come back."""

    role: Role | None = None
    # Roles by the ids of resource groups.
    resource_groups: dict[str, Role] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """When something was made and last changed, in microseconds, and how often."""

    created_at: int
    updated_at: int
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedUser:
    id: str
    # The account; None while nobody has one with an address of this user.
    user_id: str | None = None
    user_name: str
    external_id: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    emails: tuple[ProvisionedAddress, ...] = ()
    active: bool = True
    kept: KeptRoles = field(default_factory=KeptRoles)
    stamp: Stamp

    @property
    def fullname(self) -> str:
        """Return the name of the person, or where none is known that of the user."""
        names = (self.given_name, self.family_name)
        return " ".join(name for name in names if name) or self.user_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedMember:
    id: str
    user_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedGroup:
    id: str
    display_name: str
    external_id: str | None = None
    # Empty also where they were not asked for.
    members: tuple[ProvisionedMember, ...] = ()
    stamp: Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCondition:
    """A part of a WHERE clause whose values are numbered from `$3` on."""

    sql: str = "1 = 1"
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Which part of a list is asked for, in which order."""

    condition: SqlCondition = field(default_factory=SqlCondition)
    # A list of columns, as ORDER BY takes it.
    order: str = "s.id"
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryRequest:
    """A request to a directory, without the framework that brought it."""

    method: str
    # The address of the directory, under the hub's own.
    base_url: str
    # What follows it, such as `/Users`.
    path: str
    query: dict[str, str]
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryResponse:
    status: int
    headers: dict[str, str]
    body: bytes
