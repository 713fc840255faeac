"""The SQL of `whoami`, run on the driver itself, without a layer of ours in between.

The statements are recorded from our stores: a copy of them would grow old unnoticed.
"""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from hublet.accounts.users import store as users
from hublet.core.config import Settings
from hublet.core.database import Reader, Row
from hublet.tokens import store as tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statements:
    """One finds the token by its digest, the other the user by the id."""

    token: str
    user: str


class _Recorder(Reader):
    """Finds nothing, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def fetch_all(self, sql: str, *_values: Any) -> Sequence[Row]:
        self.asked.append(sql)
        return []

    async def fetch_one(self, sql: str, *_values: Any) -> Row | None:
        self.asked.append(sql)
        return None


async def _record_statements(*, first_parameter: str) -> _Statements:
    recorder = _Recorder()
    await tokens.find_caller(recorder, ["digest"])
    await users.whoami_rows(recorder, "id")
    token, user = (sql.replace("$1", first_parameter) for sql in recorder.asked)
    return _Statements(token=token, user=user)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawQueries:
    """A token by its digest; a user by the id, once per organization. Rows as they come."""

    fetch_token: Callable[[str], Awaitable[Sequence[Any] | None]]
    fetch_user: Callable[[str], Awaitable[Sequence[Sequence[Any]]]]


@asynccontextmanager
async def open_raw_queries(settings: Settings) -> AsyncIterator[RawQueries]:
    url = settings.database_url
    if url.startswith("sqlite:///"):
        yield await _on_sqlite(Path(url.removeprefix("sqlite:///")))
        return
    pool = await asyncpg.create_pool(
        url,
        min_size=1,
        max_size=settings.database.pool_size,
        connection_class=_PlainConnection,
    )
    yield await _on_postgresql(pool)
    await pool.close()


async def _on_sqlite(path: Path) -> RawQueries:
    statements = await _record_statements(first_parameter="?1")
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA query_only = ON")

    async def fetch_token(digest: str) -> Sequence[Any] | None:
        token: Sequence[Any] | None = raw.execute(statements.token, (digest,)).fetchone()
        return token

    async def fetch_user(user_id: str) -> Sequence[Sequence[Any]]:
        return raw.execute(statements.user, (user_id,)).fetchall()

    return RawQueries(fetch_token=fetch_token, fetch_user=fetch_user)


class _PlainConnection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg ships no types
    def get_reset_query(self) -> str:
        # A ceiling does not pay for a round trip that ours spares itself.
        return ""


async def _on_postgresql(pool: Any) -> RawQueries:
    statements = await _record_statements(first_parameter="$1")

    async def fetch_token(digest: str) -> Sequence[Any] | None:
        token: Sequence[Any] | None = await pool.fetchrow(statements.token, digest)
        return token

    async def fetch_user(user_id: str) -> Sequence[Sequence[Any]]:
        rows: Sequence[Sequence[Any]] = await pool.fetch(statements.user, user_id)
        return rows

    return RawQueries(fetch_token=fetch_token, fetch_user=fetch_user)
