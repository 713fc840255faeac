"""Many who hear of one thing: page by page, each of them once, whatever happens in between."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from community.discussions import a_discussion
from hublet.core import queue
from hublet.core.database import Connection, Database
from hublet.core.queue import NewTask
from hublet.notifications.mail.mail_queue import queue_thread_mail
from hublet.notifications.recipients import cleanup, service
from hublet.notifications.recipients.records import ThreadActivity
from hublet.worker import Worker
from notifications.inboxes import kept_counts, true_counts
from notifications.recipients import Stage, a_crowd, a_stage
from patience import SOON_SECONDS
from people import Headers
from registries import restored_registries
from repositories import a_repo
from scratch_database import wait_until
from workers import drain, parked_tasks, running_workers, set_grace, set_worker

LOOK = "test.look"


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    with capture_logs(), restored_registries():
        yield


@pytest.fixture
async def stage(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Stage:
    repo_id = await a_repo(client, ada, "ada/engine")
    return await a_stage(client, database, await a_discussion(client, ada), repo_id=repo_id)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (service, cleanup):
        monkeypatch.setattr(module, "BATCH", 3)


async def notified(database: Database) -> dict[str, int]:
    """Return how often something came into each inbox."""
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT user_id, version FROM inboxes WHERE last_at > 0")
    return {row["user_id"]: row["version"] for row in rows}


async def mailed(database: Database) -> dict[str, int]:
    """Return of how many things a mail to each user will tell."""
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT user_id, events FROM mails")
    return {row["user_id"]: len(row["events"].split()) for row in rows}


async def held(database: Database) -> set[str]:
    """Return whose inboxes hold anything."""
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT DISTINCT user_id FROM notifications")
    return {row["user_id"] for row in rows}


async def until_told(database: Database, count: int) -> None:
    async def all_are() -> bool:
        return len(await held(database)) >= count

    await wait_until(all_are)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("count", [2, 3, 4, 6, 10])
async def test_every_page_is_notified_once(database: Database, stage: Stage, count: int) -> None:
    crowd = await a_crowd(database, count, watching=stage.repo_id)
    await stage.comment("carol")

    await drain(database)

    everybody = dict.fromkeys([*crowd, await stage.user_id("ada")], 1)
    assert await notified(database) == everybody
    assert await mailed(database) == everybody
    assert await kept_counts(database) == await true_counts(database)


@pytest.mark.usefixtures("small_pages")
async def test_a_page_on_which_nobody_wants_to_be_notified_is_not_the_last(
    database: Database, stage: Stage
) -> None:
    deaf = await a_crowd(database, 7, watching=stage.repo_id)
    crowd = await a_crowd(database, 4, watching=stage.repo_id)
    async with database.transaction() as conn:
        await conn.execute_many(
            "UPDATE users SET disabled_at = 1 WHERE id = $1", [(user_id,) for user_id in deaf]
        )
    await stage.comment("carol")

    await drain(database)

    assert await held(database) == {*crowd, await stage.user_id("ada")}


async def test_ten_thousand_are_notified_and_other_tasks_run_in_between(
    database: Database, stage: Stage
) -> None:
    crowd = await a_crowd(database, 10_000, watching=stage.repo_id)
    seen: list[int] = []

    @queue.handles(LOOK)
    async def look(conn: Connection, _body: dict[str, Any]) -> None:
        count = await conn.fetch_value("SELECT count(*) FROM notifications")
        seen.append(count)
        if count <= len(crowd):
            await queue.add(conn, NewTask(kind=LOOK, body="{}"))

    await stage.comment("carol")
    async with database.transaction() as conn:
        await queue.add(conn, NewTask(kind=LOOK, body="{}"))
    async with running_workers(database):
        await _until_ended(database)

    assert await held(database) == {*crowd, await stage.user_id("ada")}
    # Between any two pages somebody else had a turn.
    steps = set(range(service.BATCH, 10_000, service.BATCH))
    assert {count for count in seen if 0 < count < len(crowd)} >= steps


async def _until_ended(database: Database) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while await _waiting(database):
            await asyncio.sleep(0.05)


async def _waiting(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value(
            "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM tasks WHERE kind <> $1)",
            "notifications.send-mails",
        )
    return count


@pytest.mark.usefixtures("small_pages")
async def test_a_worker_that_dies_on_the_way_loses_nothing_and_tells_nobody_twice(
    database: Database, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = await a_crowd(database, 20, watching=stage.repo_id)
    await stage.comment("carol")
    stuck = asyncio.Event()
    real, calls = queue_thread_mail, 0

    async def hang(conn: Connection, **arguments: Any) -> None:
        nonlocal calls
        calls += 1
        await real(conn, **arguments)
        if calls == 4:
            # Everything of this page is written, and nothing of it is committed.
            stuck.set()
            await asyncio.sleep(60)

    monkeypatch.setattr(service, "queue_thread_mail", hang)
    set_grace(database, 0.05)
    set_worker(database, batch_size=1)
    worker = Worker(database)
    worker.start()
    await asyncio.wait_for(stuck.wait(), SOON_SECONDS)
    await worker.stop()
    assert 0 < len(await held(database)) < len(crowd)

    await drain(database)

    everybody = dict.fromkeys([*crowd, await stage.user_id("ada")], 1)
    assert (await notified(database), await mailed(database)) == (everybody, everybody)


@pytest.mark.usefixtures("small_pages")
async def test_a_page_that_fails_is_notified_later_and_once(
    database: Database, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = await a_crowd(database, 8, watching=stage.repo_id)
    await stage.comment("carol")
    real, failed = queue_thread_mail, False

    async def fail_once(conn: Connection, **arguments: Any) -> None:
        nonlocal failed
        await real(conn, **arguments)
        if not failed:
            failed = True
            raise RuntimeError("Out of paper.")

    monkeypatch.setattr(service, "queue_thread_mail", fail_once)
    async with running_workers(database):
        await until_told(database, len(crowd) + 1)

    everybody = dict.fromkeys([*crowd, await stage.user_id("ada")], 1)
    assert (await notified(database), await mailed(database)) == (everybody, everybody)


async def test_a_task_that_runs_twice_leaves_the_same_rows(
    database: Database, stage: Stage
) -> None:
    await a_crowd(database, 5, watching=stage.repo_id)
    activity = ThreadActivity(
        thread_id=stage.thread_id, event_id="e" * 24, actor_id=await stage.user_id("carol")
    )

    states = []
    for _ in range(2):
        async with database.transaction() as conn:
            await service.notify(conn, activity)
        async with database.read() as conn:
            items = await conn.fetch_all(
                "SELECT user_id, involvement, read, event_id, last_event_id FROM notifications "
                "ORDER BY user_id"
            )
        states.append(([tuple(item) for item in items], await kept_counts(database)))

    assert states[0] == states[1]
    assert len(states[0][0]) == 6


@pytest.mark.usefixtures("small_pages")
async def test_two_workers_at_once_tell_everybody_of_everything(
    database: Database, stage: Stage
) -> None:
    crowd = await a_crowd(database, 30, watching=stage.repo_id)
    for number in range(6):
        await stage.comment("carol", f"Number {number}.")

    async with running_workers(database, 2, batch_size=2):
        await _until_ended(database)

    everybody = dict.fromkeys([*crowd, await stage.user_id("ada")], 6)
    assert await notified(database) == everybody
    assert await mailed(database) == everybody
    assert await kept_counts(database) == await true_counts(database)
    assert await parked_tasks(database) == []


@pytest.mark.usefixtures("small_pages")
async def test_what_is_gone_leaves_the_inboxes_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: Stage
) -> None:
    await a_crowd(database, 10, watching=stage.repo_id)
    await stage.comment("carol")
    await drain(database)
    assert len(await held(database)) == 11

    await client.delete(stage.address, headers=ada)
    await drain(database)

    assert (await held(database), await kept_counts(database)) == (set(), {})


@pytest.mark.usefixtures("small_pages")
async def test_what_becomes_private_leaves_the_inboxes_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: Stage
) -> None:
    await a_crowd(database, 10, watching=stage.repo_id)
    await stage.comment("carol")
    await drain(database)

    await client.put("/api/models/ada/engine/settings", headers=ada, json={"private": True})
    await drain(database)

    assert await held(database) == {await stage.user_id("ada")}
    assert await kept_counts(database) == await true_counts(database)


@pytest.mark.usefixtures("small_pages")
async def test_what_is_deleted_during_the_fan_out_stays_in_no_inbox(
    client: httpx2.AsyncClient, database: Database, ada: Headers, stage: Stage
) -> None:
    await a_crowd(database, 60, watching=stage.repo_id)
    await stage.comment("carol")

    async with running_workers(database, 2, batch_size=1):
        await until_told(database, 3)
        await client.delete(stage.address, headers=ada)
        await _until_ended(database)

    assert (await held(database), await kept_counts(database)) == (set(), {})
