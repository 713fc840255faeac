"""Read replica of PostgreSQL: used while it follows closely; else, and when it fails, the primary answers."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.database.engine import DatabaseUnavailable, Reader, ReplicaStatus, Row
from hublet.core.database.postgresql_pool import PostgresPool, PostgresReader
from hublet.core.hub import Hub
from hublet.core.logs import get_logger

log = get_logger("database")

_LOOK_SECONDS = 1.0
# How far a server has got in the log of the primary, in bytes.
_WRITTEN = "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
_REPLAYED = "SELECT (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint"


class Replica:
    """Knows whether the replica is there and how late it is.

    Its lag is the age of the last position of the primary that it has passed. Asking the replica alone
    would not tell: one that is cut off has replayed all that it received.
    """

    def __init__(self, hub: Hub, url: str, primary: PostgresPool) -> None:
        settings: Settings = hub.settings
        self._hub = hub
        self._primary = primary
        self._pool = PostgresPool(settings, url)
        self._most_lag = settings.database.replica_lag_seconds
        self._is_open = False
        self._written: deque[tuple[float, int]] = deque()
        self._watching: asyncio.Task[None] | None = None
        self.is_usable = False
        self.status = ReplicaStatus(lag_seconds=None, reason="it was not looked at yet")

    def start(self) -> None:
        """A replica that is away must not keep a hub from its start: it is opened when it is there."""
        self._watching = asyncio.create_task(self._watch(), name="postgresql-replica")

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._pool.close()

    def read(self) -> AbstractAsyncContextManager[Reader]:
        if not self.is_usable:
            return PostgresReader(self._hub, self._primary)
        return ReplicaReader(self, self._hub, self._pool, self._primary)

    def give_up(self, reason: str) -> None:
        """Leave the replica alone until it is looked at again."""
        self._set_usable(reason, lag=self.status.lag_seconds)

    async def _watch(self) -> None:
        while True:
            lag, reason = self.status.lag_seconds, None
            try:
                async with asyncio.timeout(self._most_lag + _LOOK_SECONDS):
                    lag = await self._measure_lag()
                if lag > self._most_lag:
                    reason = f"it is {lag:.1f} s late"
            except (DatabaseUnavailable, TimeoutError) as error:
                reason = getattr(error, "reason", "it does not answer")
            self._set_usable(reason, lag=lag)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _measure_lag(self) -> float:
        asked_at = monotonic()
        async with PostgresReader(self._hub, self._primary) as conn:
            self._written.append((asked_at, await conn.fetch_value(_WRITTEN)))
        if not self._is_open:
            await self._pool.start()
            self._is_open = True
        async with PostgresReader(self._hub, self._pool) as conn:
            replayed: int | None = await conn.fetch_value(_REPLAYED)
        if replayed is None:
            raise DatabaseUnavailable("database.replica_url names a server that is no replica")
        # One position that it has passed is kept, and all that it has not.
        while len(self._written) > 1 and self._written[1][1] <= replayed:
            self._written.popleft()
        newest = len(self._written) == 1 and self._written[0][1] <= replayed
        return 0.0 if newest else monotonic() - self._written[0][0]

    def _set_usable(self, reason: str | None, *, lag: float | None) -> None:
        self.status = ReplicaStatus(lag_seconds=lag, reason=reason)
        if self.is_usable != (reason is None):
            if reason is None:
                log.info("the replica is used")
            else:
                log.warning("the replica is not used", reason=" ".join(reason.split()))
        self.is_usable = reason is None


class ReplicaReader(Reader, AbstractAsyncContextManager[Reader]):
    """Reads from the replica; a statement that fails there is asked of the primary."""

    def __init__(
        self, replica: Replica, hub: Hub, pool: PostgresPool, primary: PostgresPool
    ) -> None:
        self.hub = hub
        self._replica = replica
        self._primary = primary
        self._opened = AsyncExitStack()
        self._first = PostgresReader(hub, pool)
        self._reader: Reader = self._first

    async def __aenter__(self) -> Self:
        await self._opened.enter_async_context(self._first)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._opened.__aexit__(kind, error, traceback)

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        try:
            return await self._reader.fetch_all(sql, *values)
        except DatabaseUnavailable as error:
            return await (await self._turn_to_primary(error)).fetch_all(sql, *values)

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        try:
            return await self._reader.fetch_one(sql, *values)
        except DatabaseUnavailable as error:
            return await (await self._turn_to_primary(error)).fetch_one(sql, *values)

    async def _turn_to_primary(self, error: DatabaseUnavailable) -> Reader:
        if self._reader is not self._first:
            raise error
        self._replica.give_up(error.reason)
        self._reader = await self._opened.enter_async_context(
            PostgresReader(self.hub, self._primary)
        )
        return self._reader
