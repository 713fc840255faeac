"""The most that Starlette can do for a page of notifications: a bare route, the same SQL by hand.

It knows the token as long as ours does, asks the database the same three questions on the driver
itself, and answers the same bytes. It checks no access, has no limits, no log and no version.
The statements are recorded from a real page of ours: a copy of them would grow old unnoticed.
"""

import argparse
import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.query_plans import RecordingDatabase, Statement
from hublet.core.config import Settings, load
from hublet.core.database import open_database
from hublet.core.database.postgresql_pool import translate as for_postgresql
from hublet.core.database.sqlite_connections import translate as for_sqlite
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.records import Selection

PATH = "/api/notifications"

Fetch = Callable[[str, Sequence[Any]], Awaitable[Sequence[Any]]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def recorded(settings: Settings, keys: KeyRing, user_id: str) -> list[Statement]:
    """Return what our own page asks: for the items, for their threads, for who talks in them."""
    async with open_database(Hub(settings=settings, keys=keys)) as database:
        noted = RecordingDatabase(database)
        await read_page(noted, user_id, Selection(), page=0)  # type: ignore[arg-type]  # stands in
    return noted.noted


@asynccontextmanager
async def driver(settings: Settings) -> AsyncIterator[tuple[Fetch, Callable[[str], str]]]:
    url = settings.database_url
    if url.startswith("sqlite:///"):
        raw = sqlite3.connect(Path(url.removeprefix("sqlite:///")), isolation_level=None)
        raw.execute("PRAGMA query_only = ON")
        raw.row_factory = sqlite3.Row

        async def fetch(sql: str, values: Sequence[Any]) -> Sequence[Any]:
            return raw.execute(sql, values).fetchall()

        yield fetch, for_sqlite
        return
    pool = await asyncpg.create_pool(url, min_size=1, max_size=settings.database.pool_size)

    async def fetch_pooled(sql: str, values: Sequence[Any]) -> Sequence[Any]:
        rows: Sequence[Any] = await pool.fetch(sql, *values)
        return rows

    yield fetch_pooled, for_postgresql
    await pool.close()


def application(
    fetch: Fetch, statements: Sequence[Statement], *, token: str, base_url: str
) -> Starlette:
    (page, known), (threads, whose), (talking, most) = statements
    user_id, limit = whose[0], most[1]
    encode = msgspec.json.Encoder().encode

    async def answer(request: Request) -> Response:
        if request.headers["authorization"] != f"Bearer {token}":
            raise PermissionError
        rows = await fetch(page, known)
        ids = json.dumps([row["thread_id"] for row in rows])
        found = {row["id"]: row for row in await fetch(threads, (user_id, ids))}
        participants = _by_thread(await fetch(talking, (ids, limit)), base_url)
        shown = [_item(row, found[row["thread_id"]], participants) for row in rows]
        unread, everything = rows[0]["unread"], rows[0]["total"]
        count = {"view": everything, "unread": unread, "all": everything}
        body = {"notifications": shown, "count": count, "start": 0}
        return Response(encode(body), media_type="application/json")

    return Starlette(routes=[Route(PATH, answer)])


def _by_thread(rows: Sequence[Any], base_url: str) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        user_id = row["user_id"]
        shown = {"_id": user_id, "avatar": f"{base_url}/avatars/{user_id}", "user": row["name"]}
        found.setdefault(row["thread_id"], []).append(shown)
    return found


def _item(row: Any, thread: Any, participants: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    moment = _EPOCH + timedelta(microseconds=row["updated_at"])
    common = {
        "updatedAt": moment.isoformat("T", "microseconds")[:-6] + "Z",
        "read": bool(row["read"]),
        "discussionEventId": row["event_id"],
    }
    talking = participants[thread["id"]]
    kind, thread_id = thread["kind"], thread["id"]
    if kind == "discussion":
        name = f"{thread['owner_name']}/{thread['repo_name']}"
        return common | {
            "type": "repo",
            "repo": {"name": name, "type": thread["repo_type"]},
            "discussion": {
                "num": thread["number"],
                "title": thread["title"],
                "status": thread["status"],
                "id": thread_id,
                "isPullRequest": bool(thread["is_pull_request"]),
                "participating": talking,
            },
        }
    if kind == "paper":
        paper = {"_id": thread_id, "title": thread["title"]}
        discussion = {"id": thread_id, "participating": talking, "paperId": thread_id}
        return common | {"type": "paper", "paper": paper, "paperDiscussion": discussion}
    written = {
        "id": thread_id,
        "slug": thread["slug"],
        "authorName": thread["owner_name"],
        "title": thread["title"],
        "participating": talking,
    }
    if kind == "post":
        return common | {"type": "post", "post": written}
    return common | {"type": "community_blog", "blog": written | {"canonical": False}}


async def _serve(given: argparse.Namespace) -> None:
    settings = load({"database.data_dir": given.data_dir, "database.url": given.database_url})
    keys = KeyRing.load_or_create(given.data_dir / "secret.keys")
    asked = await recorded(settings, keys, given.user_id)
    async with driver(settings) as (fetch, spelled):
        statements = [(spelled(sql), values) for sql, values in asked]
        config = uvicorn.Config(
            application(fetch, statements, token=given.token, base_url=given.base_url),
            port=given.port,
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        await uvicorn.Server(config).serve()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--database-url")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--user-id", required=True)
    parser.add_argument("--token", required=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
