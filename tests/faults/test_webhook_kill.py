"""A server is killed again and again while it delivers: nothing is lost, little is sent twice."""

import random
import time
from collections.abc import Callable
from pathlib import Path

from faults.content_events import with_database
from faults.webhook_inbox import Inbox, inbox
from hublet.core.database import Database
from hublet.webhooks.delivery.committer import MOST_UNWRITTEN
from hublet.webhooks.delivery.lanes import PER_HOST
from hublet.webhooks.delivery.store import LEASE
from patience import SOON_SECONDS
from processes import Place, serving, wait_until, working
from webhooks.engine_rows import a_webhook, trigger_many

KILLS = 10
EACH = 60
WEBHOOKS = 5
TEST_MODE = {"HUBLET_TEST_MODE": "true", "HUBLET_WEBHOOKS_DAILY_TRIGGERS": "100000"}


def test_ten_kills_lose_nothing_and_repeat_only_what_was_in_flight(place: Place) -> None:
    expected: set[str] = set()
    with inbox() as box:
        webhooks = _prepare(place, box)
        for _ in range(KILLS):
            with serving(place, variables=TEST_MODE) as server:
                before = box.arrived.total()
                expected |= _trigger(place, webhooks)
                wait_until(lambda seen=before: box.arrived.total() > seen, seconds=SOON_SECONDS)  # type: ignore[misc]
                time.sleep(random.uniform(0, 0.15))
                server.process.kill()
        with serving(place, variables=TEST_MODE):
            wait_until(lambda: _states(place) == {"delivered"}, seconds=3 * SOON_SECONDS)

    assert set(box.arrived) == expected
    assert len(expected) == KILLS * EACH * WEBHOOKS
    repeated = box.arrived.total() - len(expected)
    assert repeated <= KILLS * (PER_HOST + MOST_UNWRITTEN)
    assert _attempts(place) == len(expected), "One success is kept for each delivery."


def test_a_restarted_server_delivers_what_the_killed_one_held_and_waits_for_no_lease(
    place: Place,
) -> None:
    with inbox() as box:
        webhooks = _prepare(place, box)
        with serving(place, variables=TEST_MODE) as server:
            _trigger(place, webhooks)
            wait_until(lambda: box.arrived.total() > 0, seconds=SOON_SECONDS)
            server.process.kill()
        left = _claimed(place)
        _prolong_leases(place)
        before = box.arrived.total()
        with serving(place, variables=TEST_MODE):
            wait_until(lambda: not left or box.arrived.total() > before, seconds=SOON_SECONDS)


def test_two_workers_share_deliveries_and_a_killed_one_loses_none(
    fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    place = Place(folder=tmp_path, database_url=fresh_url())
    with inbox() as box:
        webhooks = _prepare(place, box)
        with working(place, variables=TEST_MODE), working(place, variables=TEST_MODE) as killed:
            expected = set[str]()
            for _ in range(5):
                expected |= _trigger(place, webhooks)
            wait_until(lambda: box.arrived.total() > EACH, seconds=SOON_SECONDS)
            killed.process.kill()
            wait_until(lambda: _states(place) == {"delivered"}, seconds=3 * SOON_SECONDS)
    assert set(box.arrived) == expected
    # The living one never repeats; the dead one's, no more than were in flight or unwritten.
    assert box.arrived.total() - len(expected) <= PER_HOST + MOST_UNWRITTEN
    assert _attempts(place) == len(expected)


def _prepare(place: Place, box: Inbox) -> list[str]:
    with serving(place, variables=TEST_MODE):
        pass

    async def add(database: Database) -> list[str]:
        return [await a_webhook(database, box.url) for _ in range(WEBHOOKS)]

    return with_database(place, add)


def _trigger(place: Place, webhooks: list[str]) -> set[str]:
    async def add(database: Database) -> set[str]:
        groups = await trigger_many(database, webhooks, count=EACH)
        return {each for group in groups for each in group}

    return with_database(place, add)


def _states(place: Place) -> set[str]:
    async def read(database: Database) -> set[str]:
        async with database.read() as conn:
            rows = await conn.fetch_all("SELECT DISTINCT state FROM webhook_deliveries")
        return {row["state"] for row in rows}

    return with_database(place, read)


def _prolong_leases(place: Place) -> None:
    """Let what a dead worker holds stay with it for longer than any test waits."""

    async def prolong(database: Database) -> None:
        async with database.transaction() as conn:
            await conn.execute(
                "UPDATE webhook_deliveries SET claimed_until = claimed_until + $1", 100 * LEASE
            )

    with_database(place, prolong)


def _attempts(place: Place) -> int:
    return _count(place, "SELECT count(*) FROM webhook_attempts")


def _claimed(place: Place) -> int:
    return _count(place, "SELECT count(*) FROM webhook_deliveries WHERE state <> 'delivered'")


def _count(place: Place, sql: str) -> int:
    async def read(database: Database) -> int:
        async with database.read() as conn:
            count: int = await conn.fetch_value(sql)
        return count

    return with_database(place, read)
