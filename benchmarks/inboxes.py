"""Inboxes by the million: one of 100,000 items, many of 1,000, and threads that they lead to.

A small inbox has what the large one has, only less of it: of every kind, repository and author
that a filter names there are at least a hundred items in both.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.discussions import add_users
from benchmarks.hubs import Engine
from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole

TOTAL = 10_000_000
QUICK_TOTAL = 200_000
LARGE = 100_000
SMALL = 1_000
UNREAD = 100

# Items that belong together: of a repository, of an author.
_PER_GROUP = 100
_GROUPS_IN_SMALL = SMALL // _PER_GROUP
_TALKING = 3
_USERS_AT_ONCE = 20

_POSTS, _PAPERS, _BLOGS, _DATASET = 1, 2, 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Two users whose inboxes are compared, and what a filter can ask for in both."""

    large: str
    small: str
    small_token: str
    author: str
    repo_name: str
    repo_id: str
    # The threads that are unread in both.
    unread: tuple[str, ...]
    # A time after which only a few items came, in either inbox.
    recent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """A thread, and what its items have in common in every inbox."""

    id: str
    # In the order of time, and among those of its group.
    number: int
    place: int
    group: int
    repo_id: str | None
    owner_id: str | None
    type: str

    @property
    def kind(self) -> str:
        return self.type if self.type in {"paper", "post", "blog"} else "discussion"

    @property
    def place_id(self) -> str | None:
        return self.owner_id if self.kind == "post" else self.repo_id

    @property
    def is_small(self) -> bool:
        return self.group < _GROUPS_IN_SMALL

    @property
    def is_unread(self) -> bool:
        return self.is_small and self.place >= _PER_GROUP - UNREAD // _GROUPS_IN_SMALL

    @property
    def involvement(self) -> int:
        return {0: 2, 1: 1}.get(self.place % 4, 0)


async def load(database: Database, engine: Engine, *, total: int, large_has: int = LARGE) -> Crowd:
    """Fill a new hub with so many items, and count them as the hub itself does."""
    start = micros() - large_has * 1_000_000
    author, *talking = await add_users(database, "writer", 1 + _TALKING)
    others = max(0, total - large_has - SMALL) // SMALL
    large, small, *rest = await add_users(database, "reader", 2 + others)
    repos = await _add_repos(database, author, large_has // _PER_GROUP, start)
    threads = _threads(repos, author)
    async with _in_bulk(database, engine):
        await _add_threads(database, engine, threads, talking, start)
        await _add_items(database, engine, [large], small=False)
        for batch in _batches([small, *rest]):
            await _add_items(database, engine, batch, small=True)
    await _finish(database, engine)
    async with database.transaction() as conn:
        _, token = await tokens.issue(conn, user_id=small, name="bench", role=TokenRole.write)
    return Crowd(
        large=large,
        small=small,
        small_token=token,
        author="writer-0",
        repo_name="writer-0/engine-0",
        repo_id=repos[0],
        unread=tuple(each.id for each in threads if each.is_unread),
        recent=start + (large_has - 26) * 1_000_000,
    )


_INDEXES: dict[Engine, str] = {
    "SQLite": """
        SELECT name, sql FROM sqlite_master
        WHERE type = 'index' AND tbl_name = 'notifications' AND sql IS NOT NULL
    """,
    # The server tells of the index of a table with parts without those of its parts.
    "PostgreSQL": """
        SELECT indexname AS name, replace(indexdef, ' ON ONLY ', ' ON ') AS sql FROM pg_indexes
        WHERE tablename = 'notifications' AND indexname <> 'notifications_pkey'
    """,
}


@asynccontextmanager
async def _in_bulk(database: Database, engine: Engine) -> AsyncIterator[None]:
    """Take the indexes away for a while: at the end each is made in one go, and as it was."""
    async with database.transaction() as conn:
        indexes = [(row["name"], row["sql"]) for row in await conn.fetch_all(_INDEXES[engine])]
        for name, _ in indexes:
            await conn.execute(f"DROP INDEX {name}")
    yield
    for _, sql in indexes:
        async with database.transaction() as conn:
            await conn.execute(sql)


async def _trust(conn: Connection, engine: Engine) -> None:
    """Spare the server millions of looks for rows that are known to be there."""
    if engine == "PostgreSQL":
        await conn.execute("SET LOCAL session_replication_role = replica")


def _batches(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[at : at + _USERS_AT_ONCE] for at in range(0, len(ids), _USERS_AT_ONCE))


async def _add_repos(database: Database, owner_id: str, count: int, start: int) -> list[str]:
    ids = [new_object_id() for _ in range(count)]
    async with database.transaction() as conn:
        await conn.execute_many(
            """
            INSERT INTO repos
                (id, type, owner_id, name, name_key, visibility, creator_id, tags, created_at,
                 updated_at)
            VALUES ($1, $2, $3, $4, $4, 'public', $3, '[]', $5, $5)
            """,
            [
                (each, _type(number), owner_id, f"engine-{number}", start)
                for number, each in enumerate(ids)
            ],
        )
    return ids


def _type(group: int) -> str:
    return "dataset" if group % 10 == _DATASET else "model"


def _threads(repos: Sequence[str], owner_id: str) -> list[_Thread]:
    """Return the threads by time; those of one group lie far apart."""
    apart = {_POSTS: "post", _PAPERS: "paper", _BLOGS: "blog"}
    found = []
    for number in range(len(repos) * _PER_GROUP):
        place, group = divmod(number, len(repos))
        kind = apart.get(group)
        found.append(
            _Thread(
                id=new_object_id(),
                number=number,
                place=place,
                group=group,
                repo_id=None if kind else repos[group],
                owner_id=owner_id if kind in {"post", "blog"} else None,
                type=kind or _type(group),
            )
        )
    return found


async def _add_threads(
    database: Database,
    engine: Engine,
    threads: Sequence[_Thread],
    talking: Sequence[str],
    start: int,
) -> None:
    """Add the threads with who talks in them, and beside them what their items will look like."""
    async with database.transaction() as conn:
        await _trust(conn, engine)
        await conn.execute_many(
            """
            INSERT INTO threads
                (id, kind, title, author_id, owner_id, repo_id, number, status, paper_id, slug,
                 created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
            """,
            [_thread_row(each, talking[0], start) for each in threads],
        )
        await conn.execute(
            """
            INSERT INTO thread_participants (thread_id, user_id, commented, since)
            SELECT t.id, u.id, TRUE, t.created_at FROM threads t JOIN users u ON u.id IN each($1)
            ORDER BY t.id
            """,
            json.dumps(list(talking)),
        )
        await conn.apply(
            """
            CREATE TABLE bench_items (
                thread_id TEXT PRIMARY KEY, type TEXT NOT NULL, place_id TEXT, read BOOLEAN NOT NULL,
                involvement BIGINT NOT NULL, updated_at BIGINT NOT NULL, small BOOLEAN NOT NULL
            );
            """
        )
        await conn.execute_many(
            "INSERT INTO bench_items VALUES ($1, $2, $3, $4, $5, $6, $7)",
            [
                (
                    each.id, each.type, each.place_id, not each.is_unread, each.involvement,
                    start + each.number * 1_000_000, each.is_small,
                )
                for each in threads
            ],
        )  # fmt: skip


def _thread_row(thread: _Thread, author_id: str, start: int) -> tuple[object, ...]:
    is_discussion = thread.repo_id is not None
    is_paper = thread.kind == "paper"
    return (
        thread.id,
        thread.kind,
        f"Thread number {thread.number}",
        None if is_paper else author_id,
        thread.owner_id,
        thread.repo_id,
        thread.place + 1 if is_discussion else None,
        "open" if is_discussion else None,
        f"2611.{thread.number:05}" if is_paper else None,
        None if is_discussion or is_paper else f"slug-{thread.number}",
        start,
    )


async def _add_items(
    database: Database, engine: Engine, users: Sequence[str], *, small: bool
) -> None:
    chosen = "WHERE i.small" if small else ""
    async with database.transaction() as conn:
        await _trust(conn, engine)
        await conn.execute_many(
            """
            INSERT INTO inboxes (user_id, version, last_at)
            SELECT $1, 1, max(updated_at) FROM bench_items
            """,
            [(user,) for user in users],
        )
        await conn.execute_many(
            f"""
            INSERT INTO notifications
                (user_id, thread_id, type, place_id, involvement, read, updated_at, event_id,
                 last_event_id)
            SELECT $1, i.thread_id, i.type, i.place_id, i.involvement, i.read, i.updated_at,
                i.thread_id, i.thread_id
            FROM bench_items i {chosen} ORDER BY i.thread_id
            """,
            [(user,) for user in users],
        )


async def _finish(database: Database, engine: Engine) -> None:
    """Count, and let PostgreSQL look at what it has: so much it would look at by itself."""
    async with database.transaction() as conn:
        for facet in ("type", "place_id"):
            await conn.execute(
                f"""
                INSERT INTO notification_counts (user_id, facet, involvement, total, unread)
                SELECT user_id, {facet}, involvement, count(*),
                    sum(CASE WHEN read THEN 0 ELSE 1 END)
                FROM notifications WHERE {facet} IS NOT NULL
                GROUP BY user_id, {facet}, involvement
                """
            )
        await conn.apply("DROP TABLE bench_items;")
    if engine == "PostgreSQL":
        async with database.transaction() as conn:
            await conn.execute(
                "ANALYZE notifications, notification_counts, threads, thread_participants, repos"
            )
