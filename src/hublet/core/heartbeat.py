"""Heartbeat: which processes of the hub run, on which machine and in which role.

Each process has a row and writes it again every few seconds. Who starts or stops wakes the others, so
that all know how many share the rate limits; one that was killed is counted until its beats are missed.
"""

import asyncio
import platform
from contextlib import suppress
from datetime import datetime, timedelta

import hublet
from hublet.core.clock import from_micros
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.leases import lease_clock
from hublet.core.logs import get_logger

log = get_logger("processes")

CHANNEL = "processes"
# On SQLite there is nobody to share limits with, and the disk of a laptop may sleep.
_BEAT_SECONDS = {"postgresql": 10.0, "sqlite": 60.0}
_MISSED_BEATS = 3
_SECOND = 1_000_000
# How long a process that ended without a word is still named.
_NAMED = timedelta(days=1)
_WITHOUT_API = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubProcess:
    id: str
    node: str
    name: str
    role: str
    version: str
    started_at: datetime
    seen_at: datetime
    is_draining: bool
    # Whether it was seen lately; False: it was killed, or cannot reach the database.
    is_alive: bool


class Heartbeat:
    """The row of this process, written until it stops."""

    def __init__(self, database: Database, *, role: str, name: str) -> None:
        self._database = database
        self._seconds = _BEAT_SECONDS[database.kind]
        self._id = new_object_id()
        self._node = platform.node() or "unknown"
        self._name = name
        self._role = role
        self._started_at = lease_clock()
        self._is_due = False
        self._beating: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join the processes of the hub, and learn how many serve its API."""
        await self.beat(wake=True)
        self._beating = asyncio.create_task(self._keep_beating(), name="heartbeat")

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
        try:
            async with self._database.transaction() as conn:
                await conn.execute("DELETE FROM hub_processes WHERE id = $1", self._id)
                conn.wake(CHANNEL)
        except DatabaseUnavailable as error:
            log.warning("the process is not signed off", reason=error.reason)

    def announce(self) -> None:
        """Let the next beat come at once."""
        self._is_due = True
        self._database.wake([CHANNEL])

    async def beat(self, *, wake: bool = False) -> None:
        """Write that this process lives, and count those that serve the API."""
        async with self._database.transaction() as conn:
            await self._write(conn)
            await self._remove_old(conn)
            if wake:
                conn.wake(CHANNEL)
        await self._count()

    async def _write(self, conn: Connection) -> None:
        await conn.execute(
            """
            INSERT INTO hub_processes
                (id, node, name, role, version, started_at, seen_at, is_draining)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (id) DO UPDATE
            SET seen_at = excluded.seen_at, is_draining = excluded.is_draining
            """,
            self._id, self._node, self._name, self._role, hublet.__version__, self._started_at,
            lease_clock(), self._database.hub.process.is_draining,
        )  # fmt: skip

    async def _remove_old(self, conn: Connection) -> None:
        """Drop who was not seen for a day, and whose place this process has taken after its end."""
        await conn.execute(
            """
            DELETE FROM hub_processes
            WHERE seen_at < $1 OR (node = $2 AND name = $3 AND id <> $4 AND seen_at < $5)
            """,
            lease_clock() - _NAMED // timedelta(microseconds=1),
            self._node, self._name, self._id, _oldest_beat(self._database.kind),
        )  # fmt: skip

    async def _count(self) -> None:
        async with self._database.read() as conn:
            count = await conn.fetch_value(
                "SELECT count(*) FROM hub_processes WHERE seen_at >= $1 AND role <> $2",
                _oldest_beat(self._database.kind), _WITHOUT_API,
            )  # fmt: skip
        self._database.hub.process.api_processes = max(1, count)

    async def _keep_beating(self) -> None:
        """Write a beat when it is due; when another process comes or goes, only count again."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._seconds
        with self._database.subscribe(CHANNEL) as changes:
            while True:
                wait = 0.0 if self._is_due else max(0.0, due - loop.time())
                await changes.wait(timeout=wait)
                is_due = self._is_due or loop.time() >= due
                try:
                    await (self.beat() if is_due else self._count())
                except DatabaseUnavailable as error:
                    log.warning("no heartbeat", reason=error.reason)
                if is_due:
                    self._is_due, due = False, loop.time() + self._seconds


def _oldest_beat(kind: str) -> int:
    """Return since when a process must have been seen to count as alive."""
    return lease_clock() - int(_MISSED_BEATS * _BEAT_SECONDS[kind] * _SECOND)


async def list_processes(conn: Reader, *, kind: str) -> list[HubProcess]:
    """Return those of the last day, by machine and name; `kind` is that of the database."""
    rows = await conn.fetch_all(
        """
        SELECT id, node, name, role, version, started_at, seen_at, is_draining FROM hub_processes
        ORDER BY node, name, started_at
        """
    )
    oldest = _oldest_beat(kind)
    return [
        HubProcess(
            id=row["id"],
            node=row["node"],
            name=row["name"],
            role=row["role"],
            version=row["version"],
            started_at=from_micros(row["started_at"]),
            seen_at=from_micros(row["seen_at"]),
            is_draining=bool(row["is_draining"]),
            is_alive=row["seen_at"] >= oldest,
        )
        for row in rows
    ]
