"""Context of a grant: the token request, its result, and what the requests of one process share."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from hublet.core.batching import BulkCommit, BulkWork, GroupCommit
from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.limits import Limiter
from hublet.oauth.access.records import IssuedTokens
from hublet.oauth.clients import ClientCache, ClientCredentials
from hublet.oauth.errors import OAuthError, invalid_request, invalid_target
from hublet.oauth.records import Device, OAuthApp, Permission
from hublet.oauth.scopes import resource_of
from hublet.tokens.records import Scope

T = TypeVar("T")
Request = TypeVar("Request")
Result = TypeVar("Result")

_MAX_TRACKED_CODES = 50_000
# The network may delay one poll and not the next.
_TOLERANCE_MICROS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    parameters: Mapping[str, str]
    credentials: ClientCredentials
    address: str
    agent: str | None = None

    def find(self, name: str) -> str | None:
        return self.parameters.get(name)

    def get(self, name: str) -> str:
        if name not in self.parameters:
            raise invalid_request(f"{name} is required.")
        return self.parameters[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantResult:
    """The issued tokens, and what the claims of an ID token beside them need."""

    # None for a trusted publisher, which is no app and gets no ID token.
    app: OAuthApp | None
    user_id: str
    issued: IssuedTokens
    organization_ids: Collection[str] = ()
    nonce: str | None = None
    authenticated_at: datetime | None = None
    session_id: str | None = None
    # Scopes whose claims the ID token leaves out.
    omitted_scopes: frozenset[Scope] = frozenset()
    # Only token exchange responds with it (RFC 8693).
    issued_token_type: str | None = None


def check_target(request: TokenRequest, *, base_url: str) -> None:
    """Refuse a token for another server (RFC 8707): tokens are for this hub only."""
    for name in ("resource", "audience"):
        resource_of((request.find(name) or "").split(), base_url=base_url, name=name)


def check_resource(request: TokenRequest, permission: Permission, *, base_url: str) -> None:
    """Refuse a token for another part of the hub than the person was asked about (RFC 8707, 2.2)."""
    asked = resource_of((request.find("resource") or "").split(), base_url=base_url)
    if permission.resource is not None and asked not in {None, permission.resource}:
        raise invalid_target("resource must be the one of the authorization request.")


class PollTracker:
    """Time of the last poll of each device code, in the memory of this process: a poll costs no write.

    Beyond the largest number of codes the one that was idle longest is dropped.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[str, int] = OrderedDict()

    def is_too_early(self, device: Device) -> bool:
        """Record a poll; tell whether it came before the interval was over."""
        now, last = micros(), self._last.pop(device.digest, None)
        self._last[device.digest] = now
        if len(self._last) > _MAX_TRACKED_CODES:
            self._last.popitem(last=False)
        # A clock that was turned back does not make a poll too early.
        return (
            last is not None and 0 <= now - last < device.interval * 1_000_000 - _TOLERANCE_MICROS
        )

    def forget(self, device: Device) -> None:
        self._last.pop(device.digest, None)


# How many bulks of a kind PostgreSQL commits beside each other: one waits for the disk while the next works.
_BULKS_AT_ONCE = 2

# Serves several requests of a kind at once; an error in place of a result is for its request alone.
BulkGrant = BulkWork[Request, Result]


class GrantContext:
    """State that the token requests of one process share: limits, polls, clients and commits."""

    def __init__(self, database: Database, limiter: Limiter) -> None:
        self.database = database
        self.limiter = limiter
        self.polls = PollTracker()
        self.clients = ClientCache(database)
        self._is_sqlite = database.kind == "sqlite"
        # SQLite has one writer, so requests share its commits; PostgreSQL has many, and different
        # writes that wait for each other would only be slower there.
        self._writes = GroupCommit(database) if self._is_sqlite else None
        self._bulks: dict[Any, BulkCommit[Any, Any]] = {}

    async def write(self, work: Callable[[Connection], Awaitable[T | OAuthError]]) -> T:
        """Run the work in a transaction.

        An error that the work raises rolls it back. One that it returns is raised after the commit:
        a refusal can itself change something, as the end of an access does.
        """
        outcome = await (self._alone(work) if self._writes is None else self._writes.run(work))
        if isinstance(outcome, OAuthError):
            raise outcome
        return outcome

    async def _alone(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async with self.database.transaction() as conn:
            return await work(conn)

    async def write_with_others(
        self, work: BulkGrant[Request, Result], request: Request, *, key: Hashable
    ) -> Result:
        """Serve a request together with those of its kind that wait, in one transaction.

        Requests with one key are served one after the other.
        """
        bulk = self._bulks.get(work)
        if bulk is None:
            at_once = 1 if self._is_sqlite else _BULKS_AT_ONCE
            bulk = self._bulks[work] = BulkCommit(self.database, work, at_once=at_once)
        result: Result = await bulk.run(request, key=key)
        return result
