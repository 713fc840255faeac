"""Pool of connections to one PostgreSQL server, and reads over them, straight or through PgBouncer in transaction mode;
and PostgreSQL's dialect: its spelling of our SQL, its command tags and its errors.

Behind PgBouncer two statements outside a transaction may reach two sessions of the server. So nothing is
kept in a session there: reads are transactions too, and statements are not prepared.
"""

import asyncio
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import lru_cache
from typing import Any

import asyncpg

from hublet.core.config import Settings
from hublet.core.database.engine import DatabaseUnavailable, Reader, Row, UniqueViolation
from hublet.core.hub import Hub

UNAVAILABLE_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.TargetServerAttributeNotMatched,
)


@lru_cache(maxsize=4096)
def translate(sql: str) -> str:
    # As an array: for a sub-select the planner guesses a hundred elements, and would rather read
    # a table of some thousand rows as a whole than ask its index a hundred times.
    sql = re.sub(r"\bNOT IN (each\(\$\d+\))", r"<> ALL (ARRAY \1)", sql)
    sql = re.sub(r"\bIN (each\(\$\d+\))", r"= ANY (ARRAY \1)", sql)
    sql = re.sub(r"\beach\(\$(\d+)\)", r"(SELECT jsonb_array_elements_text($\1::jsonb))", sql)
    # As an UPDATE locks it: rows that refer to it can be added meanwhile.
    sql = re.sub(r"/\* lock (\w+(?:, \w+)*) \*/", r"FOR NO KEY UPDATE OF \1", sql)
    return sql.replace("/* claim */", "FOR UPDATE SKIP LOCKED")


_INSERT = re.compile(
    r"\s*(?P<into>INSERT INTO \w+\s*\([\w\s,]+\))\s*VALUES\s*"
    # Neither a second row nor another clause.
    r"\((?P<row>(?:(?!\)\s*,\s*\(|\bON CONFLICT\b|\bRETURNING\b).)+)\)\s*"
    r"(?P<conflict>ON CONFLICT\s*(?:\([\w\s,]+\)\s*)?DO NOTHING)?\s*",
    re.DOTALL,
)
# Their values are held once more meanwhile.
_ROWS_AT_ONCE = 1000
_PARAMETER = re.compile(r"\$(\d+)")


def bulk_insert(sql: str, types: Sequence[str]) -> str | None:
    """Return the statement that inserts all rows at once, given a list for each parameter.

    A server takes the same time to begin and end a statement however many rows it inserts. None for
    what is no plain insert; one that may update would have to see each row twice.
    """
    parts = _INSERT.fullmatch(sql)
    if parts is None or any(each.endswith("[]") for each in types):
        return None
    lists = ", ".join(f"${number}::{each}[]" for number, each in enumerate(types, 1))
    names = ", ".join(f"v{number}" for number in range(1, len(types) + 1))
    row = _PARAMETER.sub(r"given.v\1", parts["row"])
    rows = f"SELECT {row} FROM unnest({lists}) AS given ({names})"
    return f"{parts['into']} {rows} {parts['conflict'] or ''}"


def changed_rows(tag: str) -> int:
    """Read a command tag such as `UPDATE 3` or `INSERT 0 1`."""
    command, *numbers = tag.split(" ")
    return int(numbers[-1]) if command in {"INSERT", "UPDATE", "DELETE", "MERGE"} else 0


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def engine_errors(raw: Any = None) -> Iterator[None]:
    """Translate what goes wrong on a connection, or, without one, on the way to it."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise UniqueViolation(str(error)) from error
    except UNAVAILABLE_ERRORS as error:
        raise DatabaseUnavailable(f"{type(error).__name__}: {error}") from error
    except asyncpg.InterfaceError as error:
        # One class stands for a lost connection and for a wrong argument.
        if raw is not None and not _is_lost(raw):
            raise
        raise DatabaseUnavailable(f"{type(error).__name__}: {error}") from error


def _is_lost(raw: Any) -> bool:
    try:
        return bool(raw.is_closed())
    except asyncpg.InterfaceError:
        # The pool takes a connection that is lost from its borrower.
        return True


def terminate(raw: Any) -> None:
    with suppress(asyncpg.InterfaceError):
        raw.terminate()


# A server that vanished without a word is noticed after this long.
_SILENCE_SECONDS = 60.0
# Connecting takes a moment even where nobody is to wait for a busy database.
_LEAST_PATIENCE_SECONDS = 0.5
# So often asyncpg gets the free connections back, to close those that are not needed.
_FREE_SECONDS = 30.0


class _PlainConnection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg ships no types
    def get_reset_query(self) -> str:
        # Nothing here changes session state, and the reset would cost a round trip each time.
        return ""


class PostgresPool:
    """Lends connections, the one that was used last first; asyncpg's pool behind it opens and closes them.

    For each loan asyncpg makes a proxy, a task and two timers: half of the time of a small query.
    """

    def __init__(self, settings: Settings, url: str) -> None:
        self._settings = settings.database
        self._url = url
        self._pool: Any = None
        # How many connections asyncpg has lent to this pool, and which of them are free.
        self._held = 0
        self._free: list[Any] = []
        # Each gets a connection, or None when it may open one.
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        # By the statement for one row, that for many, if there is one.
        self._bulk_inserts: dict[str, str | None] = {}
        self.patience = max(self._settings.busy_timeout_seconds, _LEAST_PATIENCE_SECONDS)
        lock_timeout = f"lock_timeout = {round(self.patience * 1000)}"
        if self._settings.pgbouncer:
            self.begin_writing = f"BEGIN READ WRITE; SET LOCAL {lock_timeout}"
            self.begin_reading: str | None = "BEGIN READ ONLY"
            self._prepare_session: str | None = None
        else:
            self.begin_writing = "BEGIN READ WRITE"
            # Each statement is its own snapshot, as in a transaction that is READ COMMITTED.
            self.begin_reading = None
            # Outside a transaction the session only reads, and no statement waits long for a lock.
            self._prepare_session = (
                f"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET {lock_timeout}"
            )

    async def start(self) -> None:
        caching: dict[str, Any] = {"statement_cache_size": 0} if self._settings.pgbouncer else {}
        with engine_errors():
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=1,
                max_size=self._settings.pool_size,
                connection_class=_PlainConnection,
                timeout=self.patience,
                command_timeout=_SILENCE_SECONDS,
                init=self._prepare,
                server_settings={"application_name": "hublet", "timezone": "UTC"},
                **caching,
            )

    async def _prepare(self, raw: Any) -> None:
        if self._prepare_session is not None:
            await raw.execute(self._prepare_session)

    async def acquire(self) -> Any:
        while True:
            while self._free:
                raw = self._free.pop()
                if not _is_lost(raw):
                    return raw
                self._held -= 1
            with engine_errors():
                if self._held < self._settings.pool_size:
                    return await self._open()
                raw = await self._wait()
            if raw is not None:
                return raw

    async def _open(self) -> Any:
        self._held += 1
        try:
            return await self._pool.acquire(timeout=self.patience)
        except BaseException:
            self._let_go()
            raise

    async def _wait(self) -> Any:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self.patience):
                return await turn
        except BaseException:
            # Whoever gives up in the moment of their turn leaves it to the next.
            if turn.done() and not turn.cancelled():
                self._hand_on(turn.result())
            raise

    def _hand_on(self, raw: Any) -> None:
        """Give a free connection, or the right to open one (None), to who waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(raw)
                return
        if raw is not None:
            self._free.append(raw)
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_FREE_SECONDS, self._begin_giving_back)

    def _let_go(self) -> None:
        self._held -= 1
        self._hand_on(None)

    async def insert_many(self, raw: Any, sql: str, rows: Sequence[Sequence[Any]]) -> bool:
        """Insert many rows with one statement; False when that cannot be, and nothing was done."""
        # Behind PgBouncer no statement is prepared, and without that the types are not known.
        if len(rows) <= 1 or self._settings.pgbouncer:
            return False
        if sql not in self._bulk_inserts:
            known = _INSERT.fullmatch(sql) and (await raw.prepare(sql)).get_parameters()
            bulk = bulk_insert(sql, [each.name for each in known]) if known else None
            self._bulk_inserts[sql] = bulk
        bulk = self._bulk_inserts[sql]
        if bulk is None:
            return False
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            await raw.execute(bulk, *zip(*rows[start : start + _ROWS_AT_ONCE], strict=True))
        return True

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
        """Let others use a connection with which nothing went wrong."""
        if self._is_closed or _is_lost(raw) or raw.is_in_transaction():
            await self.give_back(raw)
        else:
            self._hand_on(raw)

    async def give_back(self, raw: Any) -> None:
        """Return a connection to asyncpg's pool, which looks at it and may close it."""
        try:
            with suppress(*UNAVAILABLE_ERRORS, asyncpg.InterfaceError):
                await self._pool.release(raw)
        finally:
            self._let_go()

    def _begin_giving_back(self) -> None:
        self._timer = None
        self._giving_back = asyncio.create_task(self._give_back_free(), name="postgresql-pool")

    async def _give_back_free(self) -> None:
        free, self._free = self._free, []
        for raw in free:
            await self.give_back(raw)

    async def close(self, last_statement: str | None = None) -> None:
        """Close all connections, after a last statement."""
        if self._pool is None:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            async with asyncio.timeout(self.patience):
                await self._give_back_free()
                if last_statement is not None:
                    await self._pool.execute(last_statement)
                await self._pool.close()
        except (*UNAVAILABLE_ERRORS, asyncpg.InterfaceError):
            self._pool.terminate()


class PostgresReader(Reader, AbstractAsyncContextManager[Reader]):
    """Reads what is committed: each statement is its own snapshot.

    It takes a connection with its first statement. A request that only might read must not
    keep one from others while it still waits for something else.
    """

    def __init__(self, hub: Hub, pool: PostgresPool) -> None:
        self.hub = hub
        self._pool = pool
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
        self._raw = await self._pool.acquire()
        if self._pool.begin_reading is not None:
            with engine_errors(self._raw):
                await self._raw.execute(self._pool.begin_reading)
        return self._raw

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        raw, self._raw = self._raw, None
        if raw is None:
            return
        if self._pool.begin_reading is not None:
            await self._pool.settle(raw, "ROLLBACK")
        elif kind is not None and issubclass(kind, asyncio.CancelledError):
            # A statement that was prepared and then given up leaves the server in a transaction,
            # which the next borrower would find. Anything simple ends it.
            await self._pool.settle(raw, "SELECT 1")
        elif kind is not None and issubclass(kind, DatabaseUnavailable):
            # One that took too long is still being cancelled: asyncpg waits for that.
            await self._pool.give_back(raw)
        else:
            await self._pool.release(raw)
