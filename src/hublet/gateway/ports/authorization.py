"""Authorization of requests to ports, each by itself, with a cache of one second."""

from collections.abc import Awaitable, Callable, Hashable
from contextlib import ExitStack
from dataclasses import field
from typing import TypeVar

from hublet.core.clock import monotonic
from hublet.core.database import Database, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.dataclasses import dataclass
from hublet.gateway import store
from hublet.gateway.errors import PortTokenNeeded
from hublet.gateway.ports import service
from hublet.gateway.records import JobPort, ReachableJob
from hublet.jobs.errors import CreatorGone, JobNotFound
from hublet.jobs.records import JOBS
from hublet.tokens.cache import CallerCache
from hublet.tokens.records import Caller

_MAX_CACHED = 10_000

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of a request: its bearer token, and its cookie of the port."""

    bearer: str | None = field(default=None, repr=False)
    cookie: str | None = field(default=None, repr=False)
    # Where the request comes from: some organizations are reached from their own networks alone.
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An authorized request: the job that it goes to, and who sends it."""

    reachable: ReachableJob
    # None: an anonymous client of a public port.
    user_name: str | None
    # Whether the bearer token is one of this hub, which the job must not see.
    is_token_ours: bool


class PortAuthorizer:
    """Decides who may reach a port; results are cached for a second, or until a notified change."""

    def __init__(self, database: Database, callers: CallerCache) -> None:
        self._database = database
        self._callers = callers
        self._seconds = database.hub.settings.tokens.cache_seconds
        self._subscriptions = ExitStack()
        self._changes = [
            self._subscriptions.enter_context(database.subscribe(channel))
            for channel in (JOBS, CREDENTIALS_CHANNEL)
        ]
        self._cache: dict[Hashable, tuple[float, object]] = {}
        self._wakes = self.wakes

    @property
    def wakes(self) -> int:
        """Return a number that grows with every change that may take a right away."""
        return sum(each.wakes for each in self._changes)

    def close(self) -> None:
        self._subscriptions.close()

    async def admit(self, target: JobPort, credentials: Credentials) -> Admission:
        """Authorize a request, or raise the error of its response.

        A client without credentials does not even learn whether there is such a job.
        """
        reachable = await self._find(target.job_id)
        caller = (
            None if credentials.bearer is None else await self._callers.find(credentials.bearer)
        )
        is_ours = caller is not None
        if reachable is None or not reachable.is_public(target.port):
            if caller is None and credentials.cookie is not None:
                caller = await self._cookie_owner(target, credentials.cookie)
            if caller is None:
                raise PortTokenNeeded
            caller = caller.seen_from(credentials.address)
            if not await self._may_see(caller, reachable, target.job_id):
                raise JobNotFound(target.job_id)
        assert reachable is not None  # noqa: S101 - the checks above refuse a job that does not exist.
        service.check_state(reachable, target.port)
        name = None if caller is None else caller.user_name
        return Admission(reachable=reachable, user_name=name, is_token_ours=is_ours)

    async def _find(self, job_id: str) -> ReachableJob | None:
        return await self._cached(("job", job_id), lambda conn: store.find_reachable(conn, job_id))

    async def _cookie_owner(self, target: JobPort, cookie: str) -> Caller | None:
        async def query(conn: Reader) -> Caller | None:
            try:
                return await service.find_cookie_owner(conn, target, cookie)
            except CreatorGone:
                return None

        return await self._cached(("cookie", target, cookie), query)

    async def _may_see(self, caller: Caller, reachable: ReachableJob | None, job_id: str) -> bool:
        async def query(conn: Reader) -> bool:
            try:
                await service.check_reader(conn, caller, reachable, job_id)
            except JobNotFound:
                return False
            return True

        blocked = tuple(limit.organization_id for limit in caller.blocked)
        key = ("sees", caller.user_id, caller.token.id, blocked, job_id)
        return await self._cached(key, query)

    async def _cached(self, key: Hashable, query: Callable[[Reader], Awaitable[Value]]) -> Value:
        if self._wakes != self.wakes or len(self._cache) > _MAX_CACHED:
            self._cache.clear()
            self._wakes = self.wakes
        cached = self._cache.get(key)
        if cached is not None and cached[0] > monotonic():
            return cached[1]  # type: ignore[return-value]
        wakes = self.wakes
        async with self._database.read() as conn:
            value = await query(conn)
        # A value that was read before a change must not be cached after it.
        if wakes == self.wakes == self._wakes:
            self._cache[key] = (monotonic() + self._seconds, value)
        return value
