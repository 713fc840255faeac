"""Table copies: every row of a database in one snapshot, in the text format of PostgreSQL's COPY.

Both engines write and read it, so that a hub can move from one to the other.
"""

import asyncio
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from graphlib import TopologicalSorter
from typing import Any, BinaryIO

from hublet.core.database.engine import Connection, Database, Reader
from hublet.core.dataclasses import dataclass

_MIGRATIONS = "SELECT number, digest FROM migrations ORDER BY number"
_ROWS_AT_ONCE = 1000
_COPY_SECONDS = 86400.0
_SPECIAL = re.compile(r"[\\\n\r\t\x00]")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x00": "\\x00"}
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(ABC):
    """A state of the whole database, as it was at one moment."""

    tables: tuple[TableShape, ...]
    # The digest of each migration that was applied, by its number.
    migrations: Mapping[int, str]
    # What creates the partitions that tables have; SQLite knows none.
    partitions: tuple[str, ...] = ()

    @abstractmethod
    async def write(self, table: TableShape, file: BinaryIO) -> int:
        """Write all rows of a table and return how many there are."""


@asynccontextmanager
async def open_snapshot(database: Database) -> AsyncIterator[Snapshot]:
    """Yield the state of this moment; others go on writing meanwhile."""
    url = database.hub.settings.database_url
    if database.kind == "sqlite":
        raw = sqlite3.connect(
            url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
        )
        try:
            yield await asyncio.to_thread(_begin_sqlite, raw)
        finally:
            raw.close()
        return
    import asyncpg  # noqa: PLC0415 - only hubs on PostgreSQL need it

    server: Any = await asyncpg.connect(url)
    try:
        await server.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield await _begin_postgresql(server)
    finally:
        server.terminate()


@dataclass(frozen=True, slots=True, kw_only=True)
class _SqliteSnapshot(Snapshot):
    raw: sqlite3.Connection

    async def write(self, table: TableShape, file: BinaryIO) -> int:
        return await asyncio.to_thread(self._write, table, file)

    def _write(self, table: TableShape, file: BinaryIO) -> int:
        encoders = [_ENCODERS.get(kind, _encode) for kind in _sqlite_types(self.raw, table)]
        rows = self.raw.execute(f"SELECT {_quoted(table.columns)} FROM {_quoted([table.name])}")
        count = 0
        while batch := rows.fetchmany(_ROWS_AT_ONCE):
            lines = (_line(encoders, row) for row in batch)
            file.write("".join(lines).encode())
            count += len(batch)
        return count


def _begin_sqlite(raw: sqlite3.Connection) -> Snapshot:
    # The first read fixes what this transaction sees; writers append to the WAL beside it.
    raw.execute("BEGIN")
    names = raw.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' "
        "ORDER BY name"
    ).fetchall()
    tables = tuple(
        TableShape(name=name, columns=tuple(row[1] for row in _columns(raw, name)))
        for (name,) in names
    )
    return _SqliteSnapshot(
        tables=tables, migrations=dict(raw.execute(_MIGRATIONS).fetchall()), raw=raw
    )


def _columns(raw: sqlite3.Connection, table: str) -> list[Any]:
    return raw.execute(f"PRAGMA table_info({_quoted([table])})").fetchall()


def _sqlite_types(raw: sqlite3.Connection, table: TableShape) -> list[str]:
    types = {row[1]: row[2].upper() for row in _columns(raw, table.name)}
    return [types[column] for column in table.columns]


def _line(encoders: Sequence[Callable[[Any], str]], row: Sequence[Any]) -> str:
    cells = [
        "\\N" if value is None else encode(value)
        for encode, value in zip(encoders, row, strict=True)
    ]
    return "\t".join(cells) + "\n"


def _encode(value: Any) -> str:
    if isinstance(value, str):
        return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], value)
    return _encode_bytes(value) if isinstance(value, bytes) else str(value)


def _encode_bytes(value: Any) -> str:
    return f"\\\\x{bytes(value).hex()}"


_ENCODERS: Mapping[str, Callable[[Any], str]] = {
    "BOOLEAN": lambda value: "t" if value else "f",
    "BYTEA": _encode_bytes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _PostgresqlSnapshot(Snapshot):
    raw: Any

    async def write(self, table: TableShape, file: BinaryIO) -> int:
        done = await self.raw.copy_from_query(
            f"SELECT {_quoted(table.columns)} FROM {_quoted([table.name])}",
            output=file,
            timeout=_COPY_SECONDS,
        )
        return int(done.split()[-1])


async def _begin_postgresql(raw: Any) -> Snapshot:
    columns = await raw.fetch(
        """
        SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attgenerated = ''
        ORDER BY c.relname, a.attnum
        """
    )
    partitions = await raw.fetch(
        """
        SELECT c.relname, p.relname, pg_get_expr(c.relpartbound, c.oid)
        FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relispartition
            AND c.relkind IN ('r', 'p')
        ORDER BY c.oid
        """
    )
    tables: dict[str, list[str]] = {}
    for table, column in columns:
        tables.setdefault(table, []).append(column)
    return _PostgresqlSnapshot(
        tables=tuple(TableShape(name=name, columns=tuple(each)) for name, each in tables.items()),
        partitions=tuple(
            f"CREATE TABLE IF NOT EXISTS {_quoted([name])} PARTITION OF {_quoted([parent])} {bound}"
            for name, parent, bound in partitions
        ),
        migrations=dict(await raw.fetch(_MIGRATIONS)),
        raw=raw,
    )


async def load_tables(
    conn: Connection,
    tables: Sequence[TableShape],
    open_rows: Callable[[TableShape], BinaryIO],
) -> None:
    """Fill the tables of a fresh schema; whatever it holds by itself gives way.

    No trigger runs: what they wrote, back then, is among the rows.
    """
    is_sqlite = _is_sqlite(conn)
    disable, enable = await _trigger_statements(conn, is_sqlite=is_sqlite)
    for statement in disable:
        await conn.execute(statement)
    if is_sqlite:
        # A row may refer to a later one of its own table.
        await conn.execute("PRAGMA defer_foreign_keys = ON")
    ordered = await _by_references(conn, tables, is_sqlite=is_sqlite)
    for table in reversed(ordered):
        await conn.execute(f"DELETE FROM {_quoted([table.name])}")
    for table in ordered:
        with open_rows(table) as rows:
            await conn.copy_in(table.name, table.columns, rows)
    for statement in enable:
        await conn.execute(statement)


async def _trigger_statements(conn: Connection, *, is_sqlite: bool) -> tuple[list[str], list[str]]:
    """Return the statements that put all triggers away, and those that put them back."""
    if is_sqlite:
        rows = await conn.fetch_all("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return [f"DROP TRIGGER {_quoted([row['name']])}" for row in rows], [
            row["sql"] for row in rows
        ]
    rows = await conn.fetch_all(
        """
        SELECT DISTINCT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
        """
    )
    names = [_quoted([row["relname"]]) for row in rows]
    return [f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in names], [
        f"ALTER TABLE {name} ENABLE TRIGGER USER" for name in names
    ]


async def is_empty(conn: Reader) -> bool:
    """Tell whether the database has no table at all."""
    count: int = await conn.fetch_value(
        "SELECT count(*) FROM sqlite_master"
        if _is_sqlite(conn)
        else "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
    )
    return count == 0


def _is_sqlite(conn: Reader) -> bool:
    return conn.hub.settings.database_url.startswith("sqlite:")


async def _by_references(
    conn: Connection, tables: Sequence[TableShape], *, is_sqlite: bool
) -> list[TableShape]:
    """Sort tables so that each stands after those that it refers to."""
    known = {table.name: table for table in tables}
    graph: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(known, ()))
    for name, target in await _references(conn, known, is_sqlite=is_sqlite):
        if name != target and {name, target} <= known.keys():
            graph.add(name, target)
    return [known[name] for name in graph.static_order()]


async def _references(
    conn: Connection, names: Mapping[str, object], *, is_sqlite: bool
) -> list[tuple[str, str]]:
    if is_sqlite:
        return [
            (name, row["table"])
            for name in names
            for row in await conn.fetch_all(f"PRAGMA foreign_key_list({_quoted([name])})")
        ]
    rows = await conn.fetch_all(
        """
        SELECT c.relname, t.relname FROM pg_constraint f
        JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class t ON t.oid = f.confrelid
        WHERE f.contype = 'f' AND f.connamespace = current_schema()::regnamespace
        """
    )
    return [(name, target) for name, target in rows]


def parse_rows(file: BinaryIO, types: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the rows of a copied table as SQLite takes them."""
    decoders = [_DECODERS.get(kind, _unescape) for kind in types]
    for line in file:
        cells = line.decode().removesuffix("\n").split("\t")
        yield [
            None if cell == "\\N" else decode(cell)
            for decode, cell in zip(decoders, cells, strict=True)
        ]


def _unescape(cell: str) -> str:
    return _ESCAPED.sub(_unescape_one, cell) if "\\" in cell else cell


def _unescape_one(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _LETTERS.get(code, code)


_DECODERS: Mapping[str, Callable[[str], Any]] = {
    "BOOLEAN": lambda cell: cell == "t",
    "BYTEA": lambda cell: bytes.fromhex(_unescape(cell).removeprefix("\\x")),
    "BIGINT": int,
    "INTEGER": int,
}


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
