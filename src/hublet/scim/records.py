"""Records of SCIM: a directory, its users and groups, and requests to it."""

from dataclasses import field
from unicodedata import normalize

from hublet.accounts.records import Actor, Organization, Role
from hublet.core.dataclasses import dataclass


def comparison_key(text: str) -> str:
    """Return the form in which texts are compared where case does not count."""
    return normalize("NFC", normalize("NFC", text).lower())


# The condition of rows `s` that belong to a directory; `Directory.sql_values` are its values.
IN_DIRECTORY = "s.organization_id = $1 AND s.managed = $2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The users and groups of one kind in one organization, and the actor of a request."""

    organization: Organization
    # Whether the accounts of its users belong to the organization.
    managed: bool
    actor: Actor

    @property
    def sql_values(self) -> tuple[str, bool]:
        return self.organization.id, self.managed

    @property
    def counted_as(self) -> str:
        """Return the subject of the totals of this directory."""
        return f"{self.organization.id}/managed" if self.managed else self.organization.id


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedAddress:
    value: str
    primary: bool | None = None
    # Requests may name it; responses never do (interface 2.6).
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerRoles:
    """The former roles of a user in the organization, to be restored on return."""

    role: Role | None = None
    # Roles by the ids of resource groups.
    resource_groups: dict[str, Role] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Times of creation and of the last change, in microseconds, and the version."""

    created_at: int
    updated_at: int
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedUser:
    id: str
    # The account; None as long as no account has an address of this user.
    user_id: str | None = None
    user_name: str
    external_id: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    emails: tuple[ProvisionedAddress, ...] = ()
    active: bool = True
    former_roles: FormerRoles = field(default_factory=FormerRoles)
    stamp: Stamp

    @property
    def fullname(self) -> str:
        """Return the full name of the person; the user name if it is unknown."""
        names = (self.given_name, self.family_name)
        return " ".join(name for name in names if name) or self.user_name


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifierHolders:
    """Ids of what has the identifiers of a user by now; None where nothing has."""

    # The users of the directory with the name and with the external id.
    user_name: str | None
    external_id: str | None
    # The managed account of this name that belongs to no provisioned user now.
    abandoned_account: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedMember:
    id: str
    user_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedGroup:
    id: str
    display_name: str
    external_id: str | None = None
    # Empty also where they were not loaded.
    members: tuple[ProvisionedMember, ...] = ()
    stamp: Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCondition:
    """A part of a WHERE clause whose values are numbered from `$3` on."""

    sql: str = "1 = 1"
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Filter, order and page of a list."""

    condition: SqlCondition = field(default_factory=SqlCondition)
    # A list of columns, as ORDER BY takes it.
    order: str = "s.id"
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryRequest:
    """A request to a directory, without the framework that brought it."""

    method: str
    # The URL of the directory.
    base_url: str
    # The path below it, such as `/Users`.
    path: str
    query: dict[str, str]
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryResponse:
    status: int
    headers: dict[str, str]
    body: bytes
