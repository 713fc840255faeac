"""Notices of commits: gathered, sent again after a loss, and never needed by who looks by himself."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.database.postgresql_notices import NOTIFY_CHANNEL, Notices
from hublet.doctor.database import check_surroundings
from patience import SOON_SECONDS
from registries import restored_registries
from scratch_database import hub_of, notes_of, notes_table, wait_until, wait_until_listening
from workers import register_note_handler, running_workers

pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)


class Listener:
    """A session of another program, which notes each notice."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._came = asyncio.Event()

    def hear(self, *notice: Any) -> None:
        self.heard.append(notice[3])
        self._came.set()

    async def wait_for(self, channel: str, *, times: int = 1) -> None:
        async with asyncio.timeout(SOON_SECONDS):
            while self.heard.count(channel) < times:
                await self._came.wait()
                self._came.clear()


@pytest.fixture
async def listener(database: Database) -> AsyncIterator[Listener]:
    listener = Listener()
    raw = await asyncpg.connect(database.hub.settings.database_url)
    await raw.add_listener(NOTIFY_CHANNEL, listener.hear)
    yield listener
    await raw.close()


async def wake(database: Database, channel: str) -> None:
    async with database.transaction() as conn:
        await conn.fetch_value("SELECT 1")
        conn.wake(channel)


async def terminate_notices(database: Database) -> int:
    async with database.transaction() as conn:
        return await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'hublet notices' AND datname = current_database()"
        )


async def test_commits_that_come_close_together_are_announced_once(
    database: Database, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_until_listening(database)
    send, begun, gate = Notices._send, asyncio.Event(), asyncio.Event()  # noqa: SLF001

    async def send_later(self: Notices, raw: Any) -> None:
        begun.set()
        await gate.wait()
        await send(self, raw)

    monkeypatch.setattr(Notices, "_send", send_later)
    await wake(database, "first")
    await begun.wait()
    with database.subscribe("notes") as here:
        for number in range(20):
            await wake(database, "notes")
            # Who waits in this process hears of each one at once.
            assert here.wakes == number + 1
    gate.set()
    await listener.wait_for("notes")
    await wake(database, "end")
    await listener.wait_for("end")

    assert [each for each in listener.heard if each != "probe"] == ["first", "notes", "end"]


async def test_a_process_does_not_wake_itself_a_second_time(
    database: Database, listener: Listener
) -> None:
    await wait_until_listening(database)
    with database.subscribe("notes") as here:
        await wake(database, "notes")
        await listener.wait_for("notes")
        await wait_until_listening(database)

        assert here.wakes == 1


async def test_a_new_connection_announces_every_channel_again(
    database: Database, listener: Listener
) -> None:
    await wait_until_listening(database)
    await wake(database, "notes")
    await wake(database, "jobs")
    await listener.wait_for("jobs")
    listener.heard.clear()

    await terminate_notices(database)

    await listener.wait_for("notes")
    await listener.wait_for("jobs")


async def test_what_is_committed_without_a_connection_is_announced_with_the_next(
    database: Database, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    await wait_until_listening(database)
    send, failed = Notices._send, asyncio.Event()  # noqa: SLF001

    async def lose_the_first(self: Notices, raw: Any) -> None:
        if not failed.is_set():
            raw.terminate()
            failed.set()
        await send(self, raw)

    monkeypatch.setattr(Notices, "_send", lose_the_first)

    await wake(database, "notes")

    await listener.wait_for("notes")
    assert failed.is_set()


async def test_who_ends_right_after_a_commit_announces_it_first(
    settings: Settings, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Notices, "start", lambda _: None)
    async with open_database(hub_of(settings)) as command:
        await wake(command, "notes")

    await listener.wait_for("notes")


_COMMIT_AND_DIE = """
import asyncio, os, sys
from dataclasses import replace
from hublet.core import queue
from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing

async def main():
    settings = replace(Settings(), database=replace(Settings().database, url=sys.argv[1]))
    async with open_database(Hub(settings=settings, keys=KeyRing.new())) as database:
        async with database.transaction() as conn:
            await queue.add(conn, queue.NewTask(kind="test.note", body='{"name":"a"}', key="a"))
        os._exit(7)

asyncio.run(main())
"""


@pytest.mark.full
async def test_what_a_process_commits_that_dies_before_its_notice_is_found_by_looking(
    database: Database,
) -> None:
    # Nothing else comes between the commit and its end: the notice is never sent.
    program = [sys.executable, "-c", _COMMIT_AND_DIE, database.hub.settings.database_url]
    with restored_registries():
        register_note_handler()
        async with notes_table(database), running_workers(database):
            await wait_until_listening(database)
            done = await asyncio.to_thread(subprocess.run, program, check=False)
            await wait_until(lambda: _is_noted(database))

    assert done.returncode == 7


async def _is_noted(database: Database) -> bool:
    return await notes_of(database) == ["a"]


async def test_what_is_announced_and_heard_is_counted_and_the_doctor_tries_it(
    database: Database, listener: Listener
) -> None:
    await wait_until_listening(database)
    await wake(database, "a")
    await listener.wait_for("a")
    assert database.notices is not None
    assert (database.notices.announced, database.notices.sent) == (1, 1)
    [finding] = [each for each in await check_surroundings(database) if each.check == "notices"]
    assert finding.status == "ok"
    assert database.notices.heard >= 1


async def test_the_doctor_warns_when_notices_do_not_arrive(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.doctor.database._TRIAL_SECONDS", 0.01)
    monkeypatch.setattr(database, "wake", lambda _: None)
    [finding] = [each for each in await check_surroundings(database) if each.check == "notices"]
    assert finding.status == "warning"
