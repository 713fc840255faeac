"""Statistics of deliveries read an index, and no more of it than they say; versions tell every change."""

import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.webhooks.activity import resend_store, statistics_store, store
from hublet.webhooks.activity.records import HourCount, Recovery
from hublet.webhooks.records import WebhookState
from hublet.webhooks.store import set_state
from webhooks.engine_rows import a_webhook
from webhooks.recorded_deliveries import SECOND, a_delivery, an_attempt

URL = "https://ci.example.org/hook"
HOUR = 3600 * SECOND
PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}


class StatementRecorder:
    """Stands for a connection, and answers that there is nothing."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[Any, ...]]] = []

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        self.statements.append((sql, values))
        return []

    async def fetch_one(self, sql: str, *values: Any) -> None:
        self.statements.append((sql, values))


READERS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "hours": lambda conn: statistics_store.count_by_hour(conn, ["a" * 24, "b" * 24], since=1),
    "latencies": lambda conn: statistics_store.list_latencies(conn, "a" * 24, since=1),
    "states": lambda conn: statistics_store.count_by_state(conn, "a" * 24),
    "versions": lambda conn: statistics_store.list_versions(conn, ["a" * 24]),
    "newest": lambda conn: store.list_newest(conn, ["a" * 24]),
    "newest attempt": lambda conn: store.find_newest_attempt(conn, "a" * 24),
}


@pytest.mark.parametrize("reader", READERS)
async def test_a_figure_is_one_statement_that_reads_an_index(
    database: Database, reader: str
) -> None:
    recorder = StatementRecorder()
    await READERS[reader](recorder)
    [(sql, values)] = recorder.statements

    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # Tables this small would be read from end to end whatever indexes there are.
            await conn.execute("SET LOCAL enable_seqscan = off")
            await conn.execute("SET LOCAL enable_bitmapscan = off")
        rows = await conn.fetch_all(f"{PLANS[database.kind]} {sql}", *values)
    plan = "\n".join(str(value) for row in rows for value in row)

    # On PostgreSQL each partition has an index of that kind, with a name of its own.
    assert re.search(r"webhook_deliveries(_before)?_of_webhook|_webhook_id_id_idx", plan)
    # What a part of the statement has limited may be walked through.
    limited = {name for name in "dnp" if re.search(rf"(CO-ROUTINE|MATERIALIZE) {name}\b", plan)}
    scanned = set(re.findall(r"(?:SCAN|Seq Scan on) (webhook_deliveries|[dnp]\b)", plan))
    assert scanned - limited == set()


async def test_only_so_many_of_the_newest_count_for_each_webhook(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_store, "MOST_OF_A_DAY", 3)
    monkeypatch.setattr(statistics_store, "MOST_COUNTED", 4)
    busy, calm = [await a_webhook(database, URL) for _ in range(2)]
    start = micros() // HOUR * HOUR
    for number in range(5):
        delivery = await a_delivery(database, busy, at=start - (5 - number) * HOUR)
        await an_attempt(database, delivery, started_at=start - (5 - number) * HOUR)
    await a_delivery(database, calm, at=start - HOUR, state="failed")
    # A ping says nothing of what waits.
    await a_delivery(database, calm, at=start - HOUR, ping=True)

    async with database.read() as conn:
        hours = await statistics_store.count_by_hour(conn, [busy, calm], since=start - 9 * HOUR)
        latencies = await statistics_store.list_latencies(conn, busy, since=start - 9 * HOUR)
        states = await statistics_store.count_by_state(conn, busy)

    assert hours == {
        busy: [HourCount(start=start - n * HOUR, delivered=1, failed=0) for n in (3, 2, 1)],
        calm: [HourCount(start=start - HOUR, delivered=0, failed=1)],
    }
    assert [each.started_at for each in latencies] == [start - n * HOUR for n in (3, 2, 1)]
    assert states == {"delivered": 4}


async def test_a_version_changes_with_whatever_is_shown(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_store, "_MOST_SHOWN", 1)
    webhook, other = [await a_webhook(database, URL) for _ in range(2)]
    versions: list[int] = []

    async def look() -> None:
        async with database.read() as conn:
            found = await statistics_store.list_versions(conn, [webhook, other])
        versions.append(found[webhook])

    await look()
    await a_delivery(database, other)
    await look()
    assert versions[0] == versions[1]
    old = await a_delivery(database, webhook, state="failed", at=micros() - HOUR)
    await look()
    delivery = await a_delivery(database, webhook, state="pending")
    await look()
    await an_attempt(database, delivery, state="pending", status=500)
    await look()
    await an_attempt(database, delivery, number=2)
    await look()
    # One that the first page does not show any more.
    async with database.transaction() as conn:
        await resend_store.recover(
            conn, Recovery(webhook_id=webhook, since=0, until=micros()), limit=9
        )
    await look()
    await an_attempt(database, old)
    await look()
    async with database.transaction() as conn:
        await set_state(conn, webhook, WebhookState.disabled)
    await look()

    changes = [before != after for before, after in pairwise(versions[1:])]
    assert changes == [True] * 7
