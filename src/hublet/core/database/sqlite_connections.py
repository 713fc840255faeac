"""SQLite connections: the reader, a transaction of the writer, SQLite's dialect and errors."""

import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, BinaryIO, Protocol, TypeVar

from hublet.core.database.engine import (
    Connection,
    DatabaseUnavailable,
    Reader,
    Row,
    TransactionEnded,
    UniqueViolation,
)
from hublet.core.database.newest_schema import statements_of
from hublet.core.hub import Hub

_UNAVAILABLE_CODES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CORRUPT,
}
_DUPLICATE_KEY_CODES = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
}


@lru_cache(maxsize=4096)
def translate(sql: str) -> str:
    sql = re.sub(r"\beach\(\$(\d+)\)", r"(SELECT value FROM json_each(?\1))", sql)
    return re.sub(r"\$(\d+)", r"?\1", sql)


class EngineErrors(AbstractContextManager[None]):
    """Turns SQLite's errors into ours. It holds nothing, so one serves every statement."""

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if not isinstance(error, sqlite3.DatabaseError):
            return
        # Errors of Python's own module, such as a value too few, come without a code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code in _DUPLICATE_KEY_CODES:
            raise UniqueViolation(str(error)) from error
        # The low byte is the primary code, whatever the extended one.
        if code & 0xFF in _UNAVAILABLE_CODES:
            raise DatabaseUnavailable(str(error)) from error


engine_errors = EngineErrors()


T = TypeVar("T")


class SqliteWriter(Protocol):
    """What a transaction needs of its database."""

    hub: Hub
    writer: sqlite3.Connection

    async def begin(self) -> None: ...
    async def aside(self, work: Callable[[], T]) -> T: ...
    async def commit(self, wakes: Iterable[str]) -> None: ...
    def check_whole(self) -> None: ...
    def roll_back(self) -> None: ...
    def undo(self) -> None: ...


class SqliteReader(Reader, AbstractAsyncContextManager[Reader]):
    """The one reading connection. There is nothing to give back, so it is its own context."""

    def __init__(self, hub: Hub, raw: sqlite3.Connection) -> None:
        self.hub = hub
        self._raw = raw

    async def __aexit__(self, *_: object) -> None:
        pass

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        with engine_errors:
            return self._raw.execute(translate(sql), values).fetchall()

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        with engine_errors:
            row: Row | None = self._raw.execute(translate(sql), values).fetchone()
            return row


class SqliteConnection(Connection):
    def __init__(self, database: SqliteWriter) -> None:
        self.hub = database.hub
        self._database = database
        self._raw = database.writer
        self._begun = False
        self._ended = False
        self._depth = 0
        self._in_bulk = False
        self._wakes: set[str] = set()

    async def _ready(self) -> sqlite3.Connection:
        if self._ended:
            raise TransactionEnded
        if not self._begun:
            await self._database.begin()
            self._begun = True
        self._database.check_whole()
        return self._raw

    async def fetch_all(self, sql: str, *values: Any) -> Sequence[Row]:
        rows, _ = await self._run(sql, values)
        return rows

    async def fetch_one(self, sql: str, *values: Any) -> Row | None:
        rows = await self.fetch_all(sql, *values)
        return rows[0] if rows else None

    async def execute(self, sql: str, *values: Any) -> int:
        _, changed = await self._run(sql, values)
        return max(changed, 0)

    async def _run(self, sql: str, values: Sequence[Any]) -> tuple[Sequence[Row], int]:
        raw = await self._ready()
        if self._in_bulk:
            return await self._database.aside(partial(_run_statement, raw, sql, values))
        return _run_statement(raw, sql, values)

    async def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        raw = await self._ready()
        with engine_errors:
            raw.executemany(translate(sql), rows)

    async def claim(self, sql: str, *values: Any) -> Sequence[Row]:
        # One writer at a time: nothing can be locked by somebody else.
        return await self.fetch_all(sql, *values)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        name = f"step_{self._depth + 1}"
        await self.execute(f"SAVEPOINT {name}")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._undo(name)
            raise
        else:
            await self.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    def _undo(self, name: str) -> None:
        try:
            self._raw.execute(f"ROLLBACK TO {name}")
            self._raw.execute(f"RELEASE {name}")
        except sqlite3.Error:
            # SQLite has rolled back everything by itself, or must now.
            self._database.undo()

    async def lock(self, name: str) -> None:  # noqa: ARG002 - a write transaction is exclusive
        await self.execute("SELECT 1")

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        self._in_bulk = True
        try:
            yield
        finally:
            self._in_bulk = False

    async def apply(self, script: str) -> None:
        for statement in statements_of(script):
            await self.execute(statement)

    async def copy_in(self, table: str, columns: Sequence[str], rows: BinaryIO) -> None:
        # Only a restore needs it.
        from hublet.core.database.table_copy import parse_rows  # noqa: PLC0415 - as above

        info = await self.fetch_all(f'PRAGMA table_info("{table}")')
        types = {row["name"]: row["type"].upper() for row in info}
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        await self.execute_many(
            f'INSERT INTO "{table}" ({names}) VALUES ({values})',
            parse_rows(rows, [types[column] for column in columns]),
        )

    def wake(self, channel: str) -> None:
        self._wakes.add(channel)

    async def commit(self) -> None:
        begun, self._begun, self._ended = self._begun, False, True
        if begun:
            await self._database.commit(self._wakes)

    def roll_back(self) -> None:
        begun, self._begun, self._ended = self._begun, False, True
        if begun:
            self._database.roll_back()


def _run_statement(
    raw: sqlite3.Connection, sql: str, values: Sequence[Any]
) -> tuple[Sequence[Row], int]:
    with engine_errors:
        cursor = raw.execute(translate(sql), values)
        # A statement with RETURNING has counted its rows only when they are all fetched.
        rows: Sequence[Row] = cursor.fetchall()
        return rows, cursor.rowcount
