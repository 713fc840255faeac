"""Records of credentials, their roles and scopes, and the caller who holds one."""

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.accounts.names import name_key
from hublet.accounts.records import OrganizationLimit, is_within
from hublet.core.dataclasses import dataclass
from hublet.tokens.errors import OrganizationRefused
from hublet.tokens.format import TokenKind


class Scope(StrEnum):
    """Interface 5.3. The value is the wire name, `sentence` what it lets an app do."""

    openid = "openid"
    profile = "profile"
    email = "email"
    read_billing = "read-billing"
    read_memberships = "read-memberships"
    read_repos = "read-repos"
    gated_repos = "gated-repos"
    contribute_repos = "contribute-repos"
    write_repos = "write-repos"
    manage_repos = "manage-repos"
    read_collections = "read-collections"
    write_collections = "write-collections"
    inference_api = "inference-api"
    read_endpoints = "read-endpoints"
    write_endpoints = "write-endpoints"
    jobs = "jobs"
    webhooks = "webhooks"
    write_discussions = "write-discussions"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Scope.openid: "Get an ID token in addition to the access token",
    Scope.profile: "See your profile, such as your user name and avatar",
    Scope.email: "See your e-mail address",
    Scope.read_billing: "Know whether you have a payment method set up",
    Scope.read_memberships: "See the organizations you belong to and your role in each",
    Scope.read_repos: "Read your personal repositories",
    Scope.gated_repos: "Read public gated repositories you were granted access to",
    Scope.contribute_repos: "Create repositories and use those it created",
    Scope.write_repos: "Read and write your personal repositories",
    Scope.manage_repos: "Fully manage your personal repositories, including creating and deleting them",
    Scope.read_collections: "Read your personal collections",
    Scope.write_collections: "Read and write your personal collections, including creating and deleting them",
    Scope.inference_api: "Make inference requests to inference providers for you",
    Scope.read_endpoints: "See your inference endpoints and send inference requests to them",
    Scope.write_endpoints: "Manage your inference endpoints, including creating and deleting them",
    Scope.jobs: "Run jobs",
    Scope.webhooks: "Manage webhooks",
    Scope.write_discussions: "Open discussions and pull requests, react, comment, and close discussions",
}

# A scope that includes others; what it includes is written out, not followed.
_INCLUDED = {
    Scope.manage_repos: {Scope.write_repos, Scope.read_repos},
    Scope.write_repos: {Scope.read_repos},
    Scope.write_collections: {Scope.read_collections},
    Scope.write_endpoints: {Scope.read_endpoints},
}

ALL_SCOPES = frozenset(Scope)
_READ_SCOPES = frozenset(
    {
        Scope.openid,
        Scope.profile,
        Scope.email,
        Scope.read_billing,
        Scope.read_memberships,
        Scope.read_repos,
        Scope.gated_repos,
        Scope.read_collections,
        Scope.inference_api,
        Scope.read_endpoints,
    }
)


# The public service's names of what a service account's token may do, and our scopes.
PERMISSIONS = {
    "repo.content.read": Scope.read_repos,
    "repo.write": Scope.write_repos,
    "collection.read": Scope.read_collections,
    "collection.write": Scope.write_collections,
    "job.write": Scope.jobs,
    "org.read": Scope.read_memberships,
    "inference.serverless.write": Scope.inference_api,
    "inference.endpoints.infer.write": Scope.read_endpoints,
    "inference.endpoints.write": Scope.write_endpoints,
}


def with_included(scopes: frozenset[Scope]) -> frozenset[Scope]:
    return scopes.union(*(_INCLUDED.get(scope, ()) for scope in scopes))


class TokenRole(StrEnum):
    read = "read"
    write = "write"
    fine_grained = "fineGrained"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedGrant:
    """Scopes that hold only for what one user or organization owns."""

    entity_id: str
    entity_type: str
    entity_name: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What a fine-grained token was given: scopes that hold everywhere, and narrower ones."""

    everywhere: frozenset[Scope] = frozenset()
    scoped: tuple[ScopedGrant, ...] = ()
    # Whether it reaches the inbox and its settings, which no scope does.
    inbox: bool = False


def scopes_of(role: TokenRole, grants: Grants) -> frozenset[Scope]:
    """Return every scope that holds at least somewhere."""
    if role is TokenRole.write:
        return ALL_SCOPES
    if role is TokenRole.read:
        return _READ_SCOPES
    return with_included(grants.everywhere.union(*(grant.scopes for grant in grants.scoped)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    id: str
    kind: TokenKind
    user_id: str
    name: str
    role: TokenRole
    grants: Grants = field(default_factory=Grants)
    hint: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    # The app that it was issued to, and what it ends with.
    app_id: str | None = None
    access_id: str | None = None
    # The organization that it is confined to; it works as long as its user is a member.
    organization_id: str | None = None
    # The part of the hub that it was asked for (RFC 8707), as a path such as /mcp, several with
    # blanks between them; None: the whole hub.
    resource: str | None = None
    # Whether it works from every address, whatever networks an organization names.
    skips_network_security: bool = False

    def is_for(self, path: str) -> bool:
        """Tell whether the token was asked for what lies at this path."""
        return self.resource is None or any(
            path == part or path.startswith(f"{part}/") for part in self.resource.split()
        )

    @property
    def last4(self) -> str:
        return self.hint.rpartition("…")[2]


def scopes_for(token: TokenRecord, owner_id: str) -> frozenset[Scope]:
    """Return the scopes that hold for what this user or organization owns."""
    if token.role is not TokenRole.fine_grained:
        return scopes_of(token.role, token.grants)
    own = (grant.scopes for grant in token.grants.scoped if grant.entity_id == owner_id)
    return with_included(token.grants.everywhere.union(*own))


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationToken:
    """A credential that reaches an organization, or did before it was cut off."""

    token: TokenRecord
    user_name: str
    cut_off_at: datetime | None = None

    @property
    def state(self) -> str:
        return "approved" if self.cut_off_at is None else "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is calling, with which token, and what that token may do."""

    user_id: str
    user_name: str
    is_admin: bool
    token: TokenRecord
    scopes: frozenset[Scope]
    # Organizations that this credential does not reach, of those whose member its user is. Until it is
    # known where a request comes from, that is each one which names networks.
    blocked: tuple[OrganizationLimit, ...] = ()
    # Parts of answers that depend on nothing else, kept for as long as the caller is remembered.
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def origin(self) -> str:
        """What this token belongs to, for rights over what the same origin created."""
        return self.token.app_id or self.token.id

    @property
    def published_repo_id(self) -> str | None:
        """The one repository that the token of a trusted publisher writes; None for other tokens."""
        if self.token.kind is not TokenKind.publisher:
            return None
        return self.token.grants.scoped[0].entity_id

    def seen_from(self, address: str) -> "Caller":
        """Return the caller of a request from this address: what its networks reach is open to it."""
        if not self.blocked:
            return self
        still = [each for each in self.blocked if not is_within(address, each.ip_ranges or ())]
        return replace(self, blocked=tuple(still))

    def with_limits(self, limits: Sequence[OrganizationLimit]) -> "Caller":
        return replace(self, blocked=tuple(limits))

    def check_reaches(self, owner_id: str) -> None:
        """Refuse, with the reason, a credential that does not reach this organization."""
        for limit in self.blocked:
            if limit.organization_id == owner_id:
                raise OrganizationRefused(limit.sentence)

    def check_reaches_name(self, name: str) -> None:
        """Like `check_reaches`, for the name in an address."""
        for limit in self.blocked:
            if name_key(limit.organization_name) == name_key(name):
                raise OrganizationRefused(limit.sentence)

    def is_blocked(self, owner_id: str) -> bool:
        return any(limit.organization_id == owner_id for limit in self.blocked)

    @property
    def blocked_owners(self) -> frozenset[str]:
        """The ids of the organizations that this credential does not reach."""
        return frozenset(limit.organization_id for limit in self.blocked)

    def lasting_owners_within(self, scope: Scope) -> frozenset[str] | None:
        """Return whose things a scope holds for later on; None: everybody's.

        What a caller does not reach now, nothing that they leave behind reaches either.
        """
        owners = self.owners_within(scope)
        if not self.blocked:
            return owners
        if owners is None:
            return frozenset({self.user_id})
        return owners - self.blocked_owners

    def owners_within(self, scope: Scope) -> frozenset[str] | None:
        """Return whose things a scope holds for, by id; None: everybody's."""
        if self.token.role is not TokenRole.fine_grained:
            return None if scope in self.scopes else frozenset()
        grants = self.token.grants
        if scope in with_included(grants.everywhere):
            return None
        return frozenset(
            grant.entity_id for grant in grants.scoped if scope in with_included(grant.scopes)
        )

    def may(self, scope: Scope, *, on: str) -> bool:
        """Tell whether a scope holds for what this user or organization (by id) owns."""
        if self.blocked and self.is_blocked(on):
            return False
        owners = self.owners_within(scope)
        return owners is None or on in owners
