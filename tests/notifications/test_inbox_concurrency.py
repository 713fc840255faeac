"""Many who write, read and mark at once: nothing unread is lost, and every answer is whole."""

import asyncio
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from notifications.inboxes import (
    WATCHED,
    add_posts,
    an_item,
    deliver,
    kept_counts,
    look,
    mark,
    rows_of,
    true_counts,
)
from people import Headers, a_user

WRITERS = 4
ROUNDS = 12

# A thread and the time of what happened in it.
Seen = set[tuple[str, str]]


@pytest.fixture
async def users(database: Database, ada: Headers) -> list[str]:
    """Ada, who reads, and others whose inboxes are written along with hers."""
    assert ada
    return [(await a_user(database, name)).id for name in ("ada", "bob", "cleo")]


async def write(database: Database, users: list[str], threads: list[str], writer: int) -> None:
    for turn in range(ROUNDS):
        thread = threads[(turn * WRITERS + writer) % len(threads)]
        # In another order each time: inboxes are taken in one order all the same.
        recipients = dict.fromkeys(users[:: 1 if turn % 2 else -1], WATCHED)
        item = an_item(thread, type="post", place_id=users[0], event_id=f"{writer}-{turn}")
        await deliver(database, item, recipients)
        await asyncio.sleep(0)


def check_whole(page: dict[str, Any], *, unread_only: bool = False) -> None:
    """All items are on the first page, so the counts can be held against it."""
    items = page["notifications"]
    unread = [item for item in items if not item["read"]]
    assert page["count"]["view"] == len(items)
    assert page["count"]["unread"] == len(unread)
    if not unread_only:
        assert page["count"]["all"] == len(items)


async def read_and_mark(client: httpx2.AsyncClient, headers: Headers, seen: Seen) -> None:
    """Look, and mark as read what was seen and nothing else."""
    page = await look(client, headers)
    check_whole(page)
    items = page["notifications"]
    seen.update((item["post"]["id"], item["updatedAt"]) for item in items)
    if items:
        await mark(client, headers, lastUpdate=items[0]["updatedAt"], applyToAll="true")
    check_whole(await look(client, headers, readStatus="unread"), unread_only=True)


async def keep_marking(
    client: httpx2.AsyncClient, headers: Headers, seen: Seen, done: asyncio.Event
) -> None:
    while not done.is_set():
        await read_and_mark(client, headers, seen)
        # In one process with SQLite nothing else would make room for the others.
        await asyncio.sleep(0.001)


async def test_a_reader_who_marks_all_loses_nothing_that_arrives_meanwhile(
    client: httpx2.AsyncClient, database: Database, ada: Headers, users: list[str]
) -> None:
    threads = await add_posts(database, users[0], 15)
    seen: Seen = set()
    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(keep_marking(client, ada, seen, done))
        writers = [
            asyncio.create_task(write(database, users, threads, number))
            for number in range(WRITERS)
        ]
        await asyncio.gather(*writers)
        done.set()

    page = await look(client, ada)
    check_whole(page)
    read = {
        (item["post"]["id"], item["updatedAt"]) for item in page["notifications"] if item["read"]
    }
    assert read <= seen
    assert len(page["notifications"]) == 15
    assert await kept_counts(database) == await true_counts(database)


async def test_what_is_committed_later_has_a_later_time(
    client: httpx2.AsyncClient, database: Database, ada: Headers, users: list[str]
) -> None:
    threads = await add_posts(database, users[0], WRITERS * ROUNDS)
    seen: list[int] = []

    async def watch(done: asyncio.Event) -> None:
        """Whatever shows up in the inbox is newer than all that was there before."""
        known: set[str] = set()
        newest = 0
        while not done.is_set():
            rows = await rows_of(database, users[0])
            fresh = [row["updated_at"] for row in rows if row["thread_id"] not in known]
            assert all(moment > newest for moment in fresh)
            known |= {row["thread_id"] for row in rows}
            newest = max([newest, *fresh])
            seen.append(len(fresh))
            await asyncio.sleep(0.001)

    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(watch(done))
        await asyncio.gather(
            *(write(database, users, threads, number) for number in range(WRITERS))
        )
        done.set()

    times = [row["updated_at"] for row in await rows_of(database, users[0])]
    assert len(set(times)) == WRITERS * ROUNDS
    assert sum(seen) > 0
