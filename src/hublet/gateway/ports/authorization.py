"""Authorization of requests to ports, each by itself, with a cache of one second."""

from collections.abc import Awaitable, Callable, Hashable
from contextlib import ExitStack
from dataclasses import field
from typing import TypeVar

from hublet.core.clock import monotonic
from hublet.core.database import Database, Reader
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.light_dataclasses import dataclass
from hublet.gateway import store
from hublet.gateway.errors import PortTokenNeeded
from hublet.gateway.ports import service
from hublet.gateway.records import JobPort, ReachableJob
from hublet.jobs.errors import CreatorGone, JobNotFound
from hublet.jobs.records import JOBS
from hublet.tokens.cache import CallerCache
from hublet.tokens.records import Caller

_MAX_CACHED = 10_000

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a visitor shows: the value of a bearer token, and that of a port's cookie."""

    bearer: str | None = field(default=None, repr=False)
    cookie: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    found: ReachableJob
    # None: a stranger before a public port.
    user_name: str | None
    # Whether the bearer token is one of this hub, which is none of the job's business.
    is_token_ours: bool


class PortAuthorizer:
    """What was found holds for a second at most, and no longer than until something changes."""

    def __init__(self, database: Database, callers: CallerCache) -> None:
        self._database = database
        self._callers = callers
        self._seconds = database.hub.settings.tokens.cache_seconds
        self._open = ExitStack()
        self._changes = [
            self._open.enter_context(database.subscribe(channel))
            for channel in (JOBS, CREDENTIALS_CHANNEL)
        ]
        self._kept: dict[Hashable, tuple[float, object]] = {}
        self._rings = self.rings

    @property
    def rings(self) -> int:
        """Return what differs after every change that may keep somebody out."""
        return sum(each.rings for each in self._changes)

    def close(self) -> None:
        self._open.close()

    async def admit(self, target: JobPort, shown: Credentials) -> Admission:
        """Let somebody in, or raise the answer that they get instead.

        Who shows nothing learns nothing, not even whether there is such a job.
        """
        found = await self._find(target.job_id)
        caller = None if shown.bearer is None else await self._callers.find(shown.bearer)
        is_ours = caller is not None
        if found is None or not found.is_public(target.port):
            if caller is None and shown.cookie is not None:
                caller = await self._visitor(target, shown.cookie)
            if caller is None:
                raise PortTokenNeeded
            if not await self._may_see(caller, found, target.job_id):
                raise JobNotFound(target.job_id)
        assert found is not None  # noqa: S101 - nobody sees a job that does not exist.
        service.check_state(found, target.port)
        name = None if caller is None else caller.user_name
        return Admission(found=found, user_name=name, is_token_ours=is_ours)

    async def _find(self, job_id: str) -> ReachableJob | None:
        return await self._remembered(
            ("job", job_id), lambda conn: store.find_reachable(conn, job_id)
        )

    async def _visitor(self, target: JobPort, cookie: str) -> Caller | None:
        async def look(conn: Reader) -> Caller | None:
            try:
                return await service.find_cookie_owner(conn, target, cookie)
            except CreatorGone:
                return None

        return await self._remembered(("cookie", target, cookie), look)

    async def _may_see(self, caller: Caller, found: ReachableJob | None, job_id: str) -> bool:
        async def look(conn: Reader) -> bool:
            try:
                await service.check_reader(conn, caller, found, job_id)
            except JobNotFound:
                return False
            return True

        return await self._remembered(("sees", caller.user_id, caller.token.id, job_id), look)

    async def _remembered(self, key: Hashable, look: Callable[[Reader], Awaitable[Found]]) -> Found:
        if self._rings != self.rings or len(self._kept) > _MAX_CACHED:
            self._kept.clear()
            self._rings = self.rings
        kept = self._kept.get(key)
        if kept is not None and kept[0] > monotonic():
            return kept[1]  # type: ignore[return-value]
        rings = self.rings
        async with self._database.read() as conn:
            value = await look(conn)
        # What was read before a change must not be remembered after it.
        if rings == self.rings == self._rings:
            self._kept[key] = (monotonic() + self._seconds, value)
        return value
