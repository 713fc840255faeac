"""Rows of the processes of a hub: who is counted, who is named."""

from datetime import timedelta

import pytest

from hublet.core import heartbeat
from hublet.core.database import Database
from hublet.core.heartbeat import Heartbeat, list_processes
from scratch_database import wait_until


async def names(database: Database) -> dict[str, bool]:
    async with database.read() as conn:
        return {each.name: each.is_alive for each in await list_processes(conn, kind=database.kind)}


async def test_processes_that_serve_the_api_are_counted_until_they_stop(
    database: Database,
) -> None:
    first, second, worker = (
        Heartbeat(database, role=role, name=name)
        for role, name in (("api", "api-1"), ("all", "hub"), ("worker", "worker"))
    )
    for each in (first, second, worker):
        await each.start()

    assert await names(database) == {"api-1": True, "hub": True, "worker": True}
    assert database.hub.process.api_processes == 2
    await second.stop()
    await wait_until(lambda: _counts(database, 1))
    await worker.stop()
    await first.stop()
    assert await names(database) == {}


async def _counts(database: Database, expected: int) -> bool:
    return database.hub.process.api_processes == expected


async def test_a_killed_process_is_not_counted_after_three_missed_beats_and_still_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = Heartbeat(database, role="api", name="api-1")
    await killed.beat()
    later = heartbeat.lease_clock() + timedelta(minutes=4) // timedelta(microseconds=1)
    monkeypatch.setattr(heartbeat, "lease_clock", lambda: later)

    await Heartbeat(database, role="api", name="api-2").beat()

    assert await names(database) == {"api-1": False, "api-2": True}
    assert database.hub.process.api_processes == 1
    # What has started in its place is named instead of it.
    await Heartbeat(database, role="api", name="api-1").beat()
    assert await names(database) == {"api-1": True, "api-2": True}
    assert database.hub.process.api_processes == 2


async def test_a_process_that_drains_says_so_at_once(database: Database) -> None:
    beating = Heartbeat(database, role="all", name="hub")
    await beating.start()
    database.hub.process.when_draining = beating.announce

    database.hub.process.drain()

    await wait_until(lambda: _is_draining(database))
    await beating.stop()


async def _is_draining(database: Database) -> bool:
    async with database.read() as conn:
        [row] = await list_processes(conn, kind=database.kind)
    return row.is_draining
