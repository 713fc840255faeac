"""PostgreSQL engine: asyncpg connections in a pool, and notices between processes."""

import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from typing import Any, BinaryIO

from hublet.core.database.engine import (
    Connection,
    Database,
    DatabaseUnavailable,
    NoticeCounts,
    Reader,
    ReplicaStatus,
    Row,
    TransactionEnded,
)
from hublet.core.database.newest_schema import without_parts_of
from hublet.core.database.postgresql_notices import Notices, notify_statement
from hublet.core.database.postgresql_pool import (
    PostgresPool,
    PostgresReader,
    changed_rows,
    engine_errors,
    terminate,
    translate,
)
from hublet.core.database.postgresql_replica import Replica
from hublet.core.hub import Hub
from hublet.core.tracing import leaf_span

_MIGRATION_SECONDS = 86400.0


class PostgresConnection(Connection):
    def __init__(self, database: "PostgresDatabase") -> None:
        self.hub = database.hub
        self._database = database
        self._raw: Any = None
        self._ended = False
        # Set when it is unknown what the server still has of this transaction.
        self._spoilt = False
        self._depth = 0
        # Locks that the transaction has whatever is rolled back in it.
        self._locks: set[str] = set()
        self._wakes: set[str] = set()

    async def _ready(self) -> Any:
        if self._ended:
            raise TransactionEnded
        if self._raw is None:
            self._raw = await self._database.pool.acquire()
            await self._control(self._database.pool.begin_writing)
        self._check_whole()
        return self._raw

    def _check_whole(self) -> None:
        if self._spoilt:
            raise DatabaseUnavailable("the transaction was interrupted")

    async def _control(self, statement: str) -> None:
        """Begin or undo; when even that fails, nothing more may happen in this transaction."""
        try:
            with engine_errors(self._raw):
                await self._raw.execute(statement)
        except BaseException:
            self._spoilt = True
            raise

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        raw = await self._ready()
        with engine_errors(raw):
            rows: Sequence[Row] = await raw.fetch(translate(sql), *values)
            return rows

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        raw = await self._ready()
        with engine_errors(raw):
            row: Row | None = await raw.fetchrow(translate(sql), *values)
            return row

    async def execute(self, sql: str, *values: Any) -> int:
        raw = await self._ready()
        with engine_errors(raw):
            return changed_rows(await raw.execute(translate(sql), *values))

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        raw, sql, rows = await self._ready(), translate(sql), list(rows)
        with engine_errors(raw):
            if not await self._database.pool.insert_many(raw, sql, rows):
                await raw.executemany(sql, rows)

    async def claim(self, sql: str, *values: Any) -> Sequence[Row]:
        return await self.fetch_all(sql, *values)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        name = f"step_{self._depth + 1}"
        await self.execute(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            # The error that came first is the one to tell, also when the connection is gone.
            with suppress(Exception):
                await self._control(f"ROLLBACK TO {name}; RELEASE {name}")
            raise
        else:
            await self.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    async def lock(self, name: str) -> None:
        if name in self._locks:
            return
        await self.fetch_value("SELECT pg_advisory_xact_lock(hashtext($1))::text", name)
        # A savepoint that is rolled back releases what was locked after it.
        if not self._depth:
            self._locks.add(name)

    def in_bulk(self) -> AbstractContextManager[None]:
        # The server does the work, and waiting for it holds up nobody.
        return nullcontext()

    async def apply(self, script: str) -> None:
        raw = await self._ready()
        with engine_errors(raw):
            script = without_parts_of("sqlite", script)
            bytewise = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', script)
            if not re.sub(r"--.*", "", bytewise).strip():
                # The driver cannot read the server's answer to nothing but comments.
                return
            await raw.execute(bytewise, timeout=_MIGRATION_SECONDS)

    async def copy_in(self, table: str, columns: Sequence[str], rows: BinaryIO) -> None:
        raw = await self._ready()
        with engine_errors(raw):
            await raw.copy_to_table(table, source=rows, columns=columns, timeout=_MIGRATION_SECONDS)

    def wake(self, channel: str) -> None:
        self._wakes.add(channel)

    def _end(self) -> Any:
        raw, self._raw, self._ended = self._raw, None, True
        return raw

    async def commit(self) -> None:
        raw = self._end()
        if raw is None:
            return
        try:
            self._check_whole()
            await self._commit(raw)
        except BaseException:
            # The state of this connection is unknown; the server rolls back what is open.
            terminate(raw)
            raise
        finally:
            await self._database.pool.release(raw)

    async def _commit(self, raw: Any) -> None:
        try:
            with engine_errors(raw):
                done = await raw.execute("COMMIT")
        except BaseException:
            # It may have been kept all the same, and looking in vain harms nobody.
            self._database.announce(self._wakes)
            raise
        # The server answers the commit of a failed transaction with a polite ROLLBACK.
        if done != "COMMIT":
            raise RuntimeError("A failed statement needs a savepoint around it; nothing was kept.")
        self._database.announce(self._wakes)

    async def roll_back(self) -> None:
        if (raw := self._end()) is not None:
            await self._database.pool.settle(raw, "ROLLBACK")


class PostgresDatabase(Database):
    kind = "postgresql"

    def __init__(self, hub: Hub, url: str) -> None:
        super().__init__(hub)
        settings = hub.settings.database
        self.pool = PostgresPool(hub.settings, url)
        replica = settings.replica_url
        self.replica = None if replica is None else Replica(hub, replica, self.pool)
        self.has_replica = replica is not None
        self.notices = NoticeCounts()
        self._notices = Notices(self, settings.listen_url or url, patience=self.pool.patience)

    async def start(self) -> None:
        await self.pool.start()
        self._notices.start()
        if self.replica is not None:
            self.replica.start()

    def announce(self, channels: Collection[str]) -> None:
        """Wake the subscribers of this process now, and those of others soon."""
        self.wake(channels)
        self._notices.announce(channels)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        conn = PostgresConnection(self)
        with leaf_span("transaction"):
            try:
                yield conn
            except BaseException:
                await conn.roll_back()
                raise
            await conn.commit()

    def read(self) -> AbstractAsyncContextManager[Reader]:
        return PostgresReader(self.hub, self.pool)

    def read_replica(self) -> AbstractAsyncContextManager[Reader]:
        return self.read() if self.replica is None else self.replica.read()

    def replica_status(self) -> ReplicaStatus | None:
        return None if self.replica is None else self.replica.status

    async def check(self) -> None:
        async with self.read() as reader:
            await reader.fetch_value("SELECT 1")

    async def size(self) -> int:
        async with self.read() as reader:
            return int(await reader.fetch_value("SELECT pg_database_size(current_database())"))

    async def close(self) -> None:
        if self.replica is not None:
            await self.replica.close()
        unannounced = await self._notices.stop()
        # A command ends right after its commit: servers that run are to hear of it.
        await self.pool.close(notify_statement(unannounced) if unannounced else None)
