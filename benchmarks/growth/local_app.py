"""The whole application of a hub in this process, asked without sockets."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncpg
from starlette.types import ASGIApp, Message

from benchmarks.figures import Spoiled
from benchmarks.hubs import Engine, Site, opened
from hublet.accounts import name_parts_store
from hublet.accounts.records import User
from hublet.accounts.users import service as accounts
from hublet.app import create_application, with_edge
from hublet.core import totals
from hublet.core.database import Connection, Database
from hublet.core.paging import write_cursor
from hublet.repos import name_index_store
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

_NO_LIMIT = 1_000_000_000
_AT_ONCE = 20_000
_NAMES_AT_ONCE = 1_000
_CACHE_KIBIBYTES, _OWN_CACHE_KIBIBYTES = 1_000_000, 16_000
# In the past, and more than a million seconds ago.
_BEGINNING = 1_600_000_000


@dataclass(slots=True)
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True, kw_only=True)
class LocalApp:
    """A hub without a worker: what the operation itself does is all that happens."""

    database: Database
    engine: Engine
    asgi: ASGIApp
    # Of PostgreSQL: its address, and the process that started all others.
    url: str | None
    postmaster: int | None
    user: User
    token: str
    # What a topic has opened besides, to be closed with the hub.
    beside: AsyncExitStack

    async def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        media_type: str = "application/json",
        token: str | None = None,
    ) -> Answer:
        """Return a good answer; any other spoils the measurement."""
        sent = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        answer = await self._call(
            _scope(method, target, sent, media_type, token or self.token), sent
        )
        if not 200 <= answer.status < 300:
            raise Spoiled(f"{method} {target} answered {answer.status}: {answer.body[:300]!r}")
        return answer

    async def _call(self, scope: dict[str, Any], sent: bytes) -> Answer:
        answer, pieces = Answer(), list[bytes]()
        messages = iter([{"type": "http.request", "body": sent, "more_body": False}])

        async def receive() -> Message:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {k.decode().lower(): v.decode() for k, v in message["headers"]}
            else:
                pieces.append(message.get("body", b""))

        await self.asgi(scope, receive, send)
        answer.body = b"".join(pieces)
        return answer

    async def new_token(self, user_id: str) -> str:
        async with self.database.transaction() as conn:
            _, value = await tokens.issue(conn, user_id=user_id, name="bench", role=TokenRole.write)
        return value

    async def row_of(self, table: str, **key: object) -> dict[str, object]:
        """Return a row that the hub itself has written, to be copied."""
        [(column, value)] = key.items()
        async with self.database.read() as conn:
            row = await conn.fetch_one(f"SELECT * FROM {table} WHERE {column} = $1", value)
        if row is None:
            raise Spoiled(f"{table} has no row whose {column} is {value}.")
        return dict(row)  # type: ignore[call-overload, no-any-return]

    async def add_copies(
        self, table: str, row: Mapping[str, object], changes: Iterable[Mapping[str, object]]
    ) -> None:
        """Add rows that differ from this one as told, by the thousand.

        PostgreSQL is spared looks for the rows that they refer to, which are known to be there; triggers
        of the hub's own count the rows.
        """
        columns = list(row)
        numbers = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({numbers})"
        if isinstance(raw := getattr(self.database, "writer", None), sqlite3.Connection):
            # With the hub's own cache each row would be looked for on the disk.
            raw.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        copies = ([*(row | change).values()] for change in changes)
        while rows := list(itertools.islice(copies, _AT_ONCE)):
            async with self.database.transaction() as conn:
                if self.engine == "PostgreSQL":
                    await _switch_checks(conn, table, on=False)
                await conn.execute_many(sql, rows)
                if self.engine == "PostgreSQL":
                    await _switch_checks(conn, table, on=True)

    async def index_names(self) -> None:
        """Add all names to the index of parts, as it is filled after an upgrade."""
        for add_some in (name_parts_store.add_users, name_index_store.add_existing):
            last: str | None = ""
            while last is not None:
                async with self.database.transaction() as conn:
                    last = await add_some(conn, after=last, limit=_NAMES_AT_ONCE)

    async def run(self, sql: str, *values: object) -> int:
        async with self.database.transaction() as conn:
            return await conn.execute(sql, *values)

    async def settle(self) -> None:
        """Let PostgreSQL look at what it has, as it would within a minute by itself, and fold totals."""
        while await totals.fold(self.database):
            pass
        if self.url is not None:
            raw = await asyncpg.connect(self.url)
            # Not in a transaction of the hub: VACUUM allows none.
            await raw.execute("VACUUM ANALYZE")
            # Or it writes what was filled in for minutes, in processes that are measured too.
            await raw.execute("CHECKPOINT")
            await raw.close()
        elif isinstance(raw := getattr(self.database, "writer", None), sqlite3.Connection):
            raw.execute(f"PRAGMA cache_size = -{_OWN_CACHE_KIBIBYTES}")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _switch_checks(conn: Connection, table: str, *, on: bool) -> None:
    """Switch foreign keys of a table on or off, which are triggers of PostgreSQL's own."""
    for row in await conn.fetch_all(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = $1::text::regclass AND tgisinternal", table
    ):
        switch = "ENABLE" if on else "DISABLE"
        await conn.execute(f'ALTER TABLE {table} {switch} TRIGGER "{row["tgname"]}"')


def ids_from(number: int, count: int) -> list[str]:
    """Return ids of the past in the order of time, one for each second; the same number, the same id."""
    return [f"{_BEGINNING + each:08x}{each:016x}" for each in range(number, number + count)]


def cursor_at(position: str) -> str:
    """Return the query of a page behind a position of a list."""
    return urlencode({"cursor": write_cursor(position)})


def _scope(method: str, target: str, sent: bytes, media_type: str, token: str) -> dict[str, Any]:
    path, _, query = target.partition("?")
    headers = [
        (b"host", b"hub.test"),
        (b"authorization", f"Bearer {token}".encode()),
        (b"content-type", media_type.encode()),
        (b"content-length", str(len(sent)).encode()),
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": headers,
        "client": ("127.0.0.1", 40_000),
        "server": ("hub.test", 80),
        "state": {},
    }


@asynccontextmanager
async def local_app(site: Site, engine: Engine, **overrides: object) -> AsyncIterator[LocalApp]:
    """Open a hub with one user, who may do everything to their own."""
    settings = site.settings(limits__authenticated_requests=_NO_LIMIT, **overrides)
    async with opened(settings) as database, AsyncExitStack() as beside:
        async with database.transaction() as conn:
            user = await accounts.create_user(conn, "ada", email="ada@hub.test")
        app = create_application(database)
        app.state.callers.start()
        postmaster = None if site.database_url is None else await _postmaster(site.database_url)
        try:
            local = LocalApp(
                database=database,
                engine=engine,
                asgi=with_edge(app),
                url=site.database_url,
                postmaster=postmaster,
                user=user,
                token="",
                beside=beside,
            )
            local.token = await local.new_token(user.id)
            yield local
        finally:
            await app.state.callers.stop()


async def _postmaster(url: str) -> int:
    raw = await asyncpg.connect(url)
    try:
        folder = await raw.fetchval("SELECT current_setting('data_directory')")
    finally:
        await raw.close()
    return int(await asyncio.to_thread(_first_line, Path(folder, "postmaster.pid")))


def _first_line(path: Path) -> str:
    return path.read_text().splitlines()[0]
