"""PostgreSQL engine: asyncpg connections, a pool, and LISTEN for what other processes commit."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from typing import Any, BinaryIO

import asyncpg

from hublet.core.database.engine import (
    Connection,
    Database,
    DatabaseUnavailable,
    Reader,
    Row,
    TransactionEnded,
)
from hublet.core.database.postgresql_dialect import (
    UNAVAILABLE_ERRORS,
    changed_rows,
    engine_errors,
    quote,
    terminate,
    translate,
)
from hublet.core.hub import Hub
from hublet.core.logs import get_logger
from hublet.core.tracing import leaf_span

log = get_logger("database")

NOTIFY_CHANNEL = "hublet"

_RECONNECT_SECONDS = 0.5
# A server that vanished without a word is noticed after this long.
_LISTEN_SILENCE_SECONDS = 60.0


async def listen(database: Database, url: str, *, patience: float) -> None:
    """Ring the database's subscribers; come back after every loss of the connection."""
    while True:
        try:
            # Its default is a whole number, from which the type is guessed.
            raw = await asyncpg.connect(url, timeout=patience)  # pyright: ignore[reportArgumentType]
            try:
                await _relay_notifications(database, raw, patience=patience)
            finally:
                raw.terminate()
        except Exception as error:  # noqa: BLE001 - whatever it was, listening must come back
            log.warning("notices cannot be heard", reason=f"{type(error).__name__}: {error}")
        await asyncio.sleep(_RECONNECT_SECONDS)


async def _relay_notifications(database: Database, raw: Any, *, patience: float) -> None:
    lost = asyncio.Event()
    raw.add_termination_listener(lambda _: lost.set())
    await raw.add_listener(NOTIFY_CHANNEL, lambda *notice: database.wake([notice[3]]))
    # Whatever was committed while nobody listened is found by looking once.
    database.wake_all()
    while not lost.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN_SILENCE_SECONDS):
                await lost.wait()
        if not lost.is_set():
            await raw.execute("SELECT 1", timeout=patience)


# A server that vanished without a word is noticed after this long.
_SILENCE_SECONDS = 60.0
_MIGRATION_SECONDS = 86400.0
# Connecting takes a moment even where nobody is to wait for a busy database.
_LEAST_PATIENCE_SECONDS = 0.5


class _PlainConnection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg ships no types
    def get_reset_query(self) -> str:
        # Nothing here changes session state, and the reset would cost a round trip each time.
        return ""


class PostgresReader(Reader, AbstractAsyncContextManager[Reader]):
    """Reads without a transaction: each statement is its own snapshot, as READ COMMITTED is.

    It takes a connection with its first statement. A request that only might read must not
    keep one from others while it still waits for something else.
    """

    def __init__(self, database: "PostgresDatabase") -> None:
        self.hub = database.hub
        self._database = database
        self._raw: Any = None

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        raw = self._raw or await self._take()
        with engine_errors(raw):
            rows: Sequence[Row] = await raw.fetch(translate(sql), *values)
            return rows

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        raw = self._raw or await self._take()
        with engine_errors(raw):
            row: Row | None = await raw.fetchrow(translate(sql), *values)
            return row

    async def _take(self) -> Any:
        self._raw = await self._database.acquire()
        return self._raw

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        raw, self._raw = self._raw, None
        if raw is None:
            return
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            # A statement that was prepared and then given up leaves the server in a transaction,
            # which the next borrower would find. Anything simple ends it.
            await self._database.settle(raw, "SELECT 1")
        else:
            await self._database.release(raw)


class PostgresConnection(Connection):
    def __init__(self, database: "PostgresDatabase") -> None:
        self.hub = database.hub
        self._database = database
        self._raw: Any = None
        self._ended = False
        # Set when it is unknown what the server still has of this transaction.
        self._spoilt = False
        self._depth = 0
        self._wakes: set[str] = set()

    async def _ready(self) -> Any:
        if self._ended:
            raise TransactionEnded
        if self._raw is None:
            self._raw = await self._database.acquire()
            # Outside a transaction the session only reads, see `_prepare`.
            await self._control("BEGIN READ WRITE")
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
        raw = await self._ready()
        with engine_errors(raw):
            await raw.executemany(translate(sql), rows)

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
        await self.fetch_value("SELECT pg_advisory_xact_lock(hashtext($1))::text", name)

    def in_bulk(self) -> AbstractContextManager[None]:
        # The server does the work, and waiting for it holds up nobody.
        return nullcontext()

    async def apply(self, script: str) -> None:
        raw = await self._ready()
        with engine_errors(raw):
            bytewise = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', script)
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
            await self._database.release(raw)
        self._database.wake(self._wakes)

    async def _commit(self, raw: Any) -> None:
        # One round trip: the notices leave with the commit or not at all.
        notices = [f"NOTIFY {NOTIFY_CHANNEL}, {quote(channel)}; " for channel in self._wakes]
        with engine_errors(raw):
            done = await raw.execute("".join(notices) + "COMMIT")
        # The server answers the commit of a failed transaction with a polite ROLLBACK.
        if done != "COMMIT":
            raise RuntimeError("A failed statement needs a savepoint around it; nothing was kept.")

    async def roll_back(self) -> None:
        if (raw := self._end()) is not None:
            await self._database.settle(raw, "ROLLBACK")


class PostgresDatabase(Database):
    kind = "postgresql"

    def __init__(self, hub: Hub, url: str) -> None:
        super().__init__(hub)
        self._url = url
        self.patience = max(hub.settings.database.busy_timeout_seconds, _LEAST_PATIENCE_SECONDS)
        self._pool: Any = None
        self._listener: asyncio.Task[None] | None = None

    async def start(self) -> None:
        with engine_errors():
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=1,
                max_size=self.hub.settings.database.pool_size,
                connection_class=_PlainConnection,
                timeout=self.patience,
                command_timeout=_SILENCE_SECONDS,
                init=self._prepare,
                server_settings={"application_name": "hublet", "timezone": "UTC"},
            )
        self._listener = asyncio.create_task(
            listen(self, self._url, patience=self.patience), name="postgresql-listen"
        )

    async def _prepare(self, raw: Any) -> None:
        """Let a statement outside a transaction only read, and let none wait long for a lock."""
        await raw.execute(
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; "
            f"SET lock_timeout = {round(self.patience * 1000)}"
        )

    async def acquire(self) -> Any:
        with engine_errors():
            # Waiting with a limit costs more than taking a connection that lies ready.
            limit = None if self._pool.get_idle_size() else self.patience
            return await self._pool.acquire(timeout=limit)

    async def settle(self, raw: Any, statement: str) -> None:
        """End what went wrong on a connection, and release it; one where that fails is given up."""
        try:
            await raw.execute(statement, timeout=self.patience)
        except BaseException as error:
            terminate(raw)
            # What went wrong is told, not that the connection failed as well.
            if not isinstance(error, Exception):
                raise
        finally:
            await self.release(raw)

    async def release(self, raw: Any) -> None:
        with suppress(*UNAVAILABLE_ERRORS, asyncpg.InterfaceError):
            await self._pool.release(raw)

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
        return PostgresReader(self)

    async def check(self) -> None:
        async with self.read() as reader:
            await reader.fetch_value("SELECT 1")

    async def size(self) -> int:
        async with self.read() as reader:
            return int(await reader.fetch_value("SELECT pg_database_size(current_database())"))

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        try:
            async with asyncio.timeout(self.patience):
                await self._pool.close()
        except (*UNAVAILABLE_ERRORS, asyncpg.InterfaceError):
            self._pool.terminate()
