"""On PostgreSQL what grows lies in partitions: every row finds its place, and old days are dropped."""

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from hublet.core import clock, ids
from hublet.core.clock import micros
from hublet.core.database import Database, Reader, UniqueViolation, open_database, partitions
from hublet.core.database.migrations import known_migrations, migrate
from hublet.core.database.postgresql_pool import translate
from hublet.core.database_metrics import PartitionMetrics
from hublet.doctor.database import check_surroundings
from hublet.webhooks.activity import partitions_store, service
from hublet.webhooks.activity import store as activity
from hublet.webhooks.delivery import store as delivery
from hublet.webhooks.delivery.records import Ending
from hublet.webhooks.records import ClaimedDelivery, DeliveryState, OutgoingEvent
from people import a_user
from processes import Place
from scratch_database import hub_of
from webhooks.engine_rows import REPO, a_webhook
from webhooks.recorded_deliveries import DAY, a_delivery, an_attempt

pytestmark = [pytest.mark.full, pytest.mark.parametrize("place", ["postgresql"], indirect=True)]

LOG = ("webhook_events", "webhook_deliveries", "webhook_attempts")


@pytest.fixture
async def empty(place: Place) -> AsyncIterator[Database]:
    place.data_dir.mkdir()
    async with open_database(hub_of(place.settings)) as database:
        yield database


@pytest.fixture
async def database(empty: Database) -> Database:
    await migrate(empty)
    return empty


async def places_of(database: Database, table: str) -> list[str]:
    """Return the partitions in which the rows of a table lie."""
    async with database.read() as conn:
        rows = await conn.fetch_all(f"SELECT tableoid::regclass::text AS name FROM {table}")
    return sorted(row["name"] for row in rows)


async def partitions_of(database: Database, table: str) -> list[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT inhrelid::regclass::text AS name FROM pg_inherits "
            "WHERE inhparent = to_regclass($1) ORDER BY 1",
            table,
        )
    return [row["name"] for row in rows]


async def rows_of(database: Database, table: str) -> list[dict[str, Any]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(f"SELECT to_jsonb(t)::text AS row FROM {table} t ORDER BY 1")
    return [json.loads(row["row"]) for row in rows]


def day_name(table: str, moment: int) -> str:
    return f"{table}_day{clock.from_micros(moment):%Y%m%d}"


async def forget_the_past(database: Database) -> None:
    """Drop the partition of what was there before, as it goes when it is old."""
    async with database.transaction() as conn:
        for table in LOG:
            for name in await partitions_of(database, table):
                if "_before" in name:
                    await conn.execute(f"DROP TABLE {name}")


async def test_rows_of_the_schema_before_are_all_there_afterwards(empty: Database) -> None:
    await migrate(empty, [each for each in known_migrations() if each.number < 37])
    # What the code of today writes as well.
    traced = ("outbox", "tasks", "webhook_events", "jobs")
    async with empty.transaction() as conn:
        for table in traced:
            await conn.execute(f"ALTER TABLE {table} ADD COLUMN trace TEXT")
        await conn.execute(
            "CREATE TABLE name_parts (scope TEXT, part TEXT, id TEXT, PRIMARY KEY (scope, part, id))"
        )
    webhook_id = await a_webhook(empty, "https://example.com/hook")
    user = await a_user(empty, "bob")
    for days in (40, 3, 0, -2):
        moment = micros() - days * DAY
        await an_attempt(empty, await a_delivery(empty, webhook_id, at=moment))
    async with empty.transaction() as conn:
        await conn.execute(
            "INSERT INTO inboxes (user_id, version, last_at) VALUES ($1, 1, 1)", user.id
        )
        await conn.execute(
            "INSERT INTO notifications (user_id, thread_id, type, involvement, read, updated_at) "
            "SELECT $1, n::text, 'model', 0, FALSE, n FROM generate_series(1, 50) AS n",
            user.id,
        )
    tables = (*LOG, "notifications")
    before = {table: await rows_of(empty, table) for table in tables}
    async with empty.transaction() as conn:
        for table in traced:
            await conn.execute(f"ALTER TABLE {table} DROP COLUMN trace")
        await conn.execute("DROP TABLE name_parts")

    await migrate(empty)

    assert {table: await rows_of(empty, table) for table in tables} == before
    assert [len(rows) for rows in before.values()] == [4, 4, 4, 50]
    assert len(await partitions_of(empty, "notifications")) == 32


async def test_days_are_made_ahead_and_hold_what_happens_in_them(database: Database) -> None:
    webhook_id = await a_webhook(database, "https://example.com/hook")
    for _ in range(2):
        await partitions.add_days(database, partitions_store.TABLES)
    tomorrow = micros() + DAY
    await an_attempt(database, await a_delivery(database, webhook_id, at=tomorrow))

    for table in LOG:
        assert await places_of(database, table) == [day_name(table, tomorrow)]
        # What was there before ends today.
        assert len(await partitions_of(database, table)) == partitions.DAYS_AHEAD + 2


async def test_a_day_without_a_partition_gets_its_rows_when_it_is_made(database: Database) -> None:
    webhook_id = await a_webhook(database, "https://example.com/hook")
    clock.move(timedelta(days=20))
    await an_attempt(database, await a_delivery(database, webhook_id))
    assert await places_of(database, "webhook_deliveries") == ["webhook_deliveries_default"]
    before = {table: await rows_of(database, table) for table in LOG}

    await partitions.add_days(database, partitions_store.TABLES)

    for table in LOG:
        assert await places_of(database, table) == [day_name(table, micros())]
        assert await rows_of(database, table) == before[table]


async def test_a_clock_that_is_turned_back_finds_a_place_too(database: Database) -> None:
    webhook_id = await a_webhook(database, "https://example.com/hook")
    clock.move(timedelta(days=50))
    await partitions.add_days(database, partitions_store.TABLES)
    await service.prune(database)
    # The past was dropped: today has no partition now.
    clock.reset()
    ids.restart()
    delivery_id = await a_delivery(database, webhook_id)
    assert await places_of(database, "webhook_deliveries") == ["webhook_deliveries_default"]

    await partitions.add_days(database, partitions_store.TABLES)

    assert await places_of(database, "webhook_deliveries") == [
        day_name("webhook_deliveries", micros())
    ]
    async with database.read() as conn:
        assert await activity.find(conn, webhook_id, delivery_id) is not None


async def test_an_old_day_is_dropped_and_what_still_counts_stays(database: Database) -> None:
    await forget_the_past(database)
    webhook_id = await a_webhook(database, "https://example.com/hook")
    await partitions.add_days(database, partitions_store.TABLES)
    first = micros()
    old = [await a_delivery(database, webhook_id) for _ in range(3)]
    for delivery_id in old:
        await an_attempt(database, delivery_id)
    waiting = await a_delivery(database, webhook_id, state="pending")
    await an_attempt(database, waiting, state="pending")
    clock.move(timedelta(days=33))
    replayed = old[0]
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE webhook_deliveries SET finished_at = $1 WHERE id = $2", micros(), replayed
        )

    await service.prune(database)

    kept = sorted([waiting, replayed])
    for table in LOG:
        assert day_name(table, first) not in await partitions_of(database, table)
        assert await places_of(database, table) == [f"{table}_default"] * 2
    assert sorted(row["id"] for row in await rows_of(database, "webhook_deliveries")) == kept
    assert sorted(row["delivery_id"] for row in await rows_of(database, "webhook_attempts")) == kept

    clock.move(timedelta(days=31))
    await service.prune(database)

    # The default partition is cleared row by row.
    assert [row["id"] for row in await rows_of(database, "webhook_deliveries")] == [waiting]
    assert [row["delivery_id"] for row in await rows_of(database, "webhook_attempts")] == [waiting]
    assert len(await rows_of(database, "webhook_events")) == 1


async def test_a_webhook_has_one_delivery_of_an_event_wherever_it_lies(database: Database) -> None:
    await partitions.add_days(database, partitions_store.TABLES)
    webhook_id = await a_webhook(database, "https://example.com/hook")
    for moment in (micros(), micros() + DAY):
        delivery_id = await a_delivery(database, webhook_id, at=moment)
        [row] = [
            row for row in await rows_of(database, "webhook_deliveries") if row["id"] == delivery_id
        ]
        with pytest.raises(UniqueViolation):
            await a_delivery(database, webhook_id, event_id=row["event_id"])


class Explainer(Reader):
    """Explains each statement instead of running it, and notes the partitions that it would read."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self.plan = ""

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        rows = await self._conn.fetch_all(f"EXPLAIN {translate(sql)}", *values)
        self.plan = "\n".join(row[0] for row in rows)
        return []

    async def fetch_one(self, sql: str, *values: Any) -> None:
        await self.fetch_all(sql, *values)

    async def execute(self, sql: str, *values: Any) -> int:
        await self.fetch_all(sql, *values)
        return 0


async def test_what_happens_often_looks_at_the_days_it_concerns_only(database: Database) -> None:
    await forget_the_past(database)
    await partitions.add_days(database, partitions_store.TABLES)
    event_id, delivery_id = ids.new_object_id(), ids.new_object_id()
    event = OutgoingEvent(id=event_id, payload=b"{}", repo=REPO)
    claimed = ClaimedDelivery(
        id=delivery_id, webhook_id="a" * 24, event=event, tries=0, attempts=0, ping=False, due_at=0
    )
    async with database.transaction() as conn:
        explain: Any = Explainer(conn)
        await delivery.end_deliveries(
            explain, [claimed], Ending(state=DeliveryState.delivered), worker="w"
        )
        assert _days(explain.plan, "webhook_deliveries") == 1
        await delivery.list_events(explain, [event_id])
        assert _days(explain.plan, "webhook_events") == 1
        await activity.list_attempts(explain, delivery_id)
        assert _days(explain.plan, "webhook_attempts") == 1
        await explain.fetch_all(
            "SELECT 1 FROM notifications WHERE user_id = $1 AND NOT read", "a" * 24
        )
        assert len(_scanned(explain.plan, r"notifications_\d+")) == 1


def _days(plan: str, table: str) -> int:
    return len(_scanned(plan, rf"{table}_(?:day\d+|default)"))


def _scanned(plan: str, name: str) -> set[str]:
    return set(re.findall(rf" on ({name})\b", plan))


async def test_the_doctor_and_metrics_tell_of_days_without_partitions_and_of_stray_rows(
    database: Database,
) -> None:
    [finding] = [each for each in await check_surroundings(database) if each.check == "partitions"]
    assert finding.status == "warning"
    await partitions.add_days(database, partitions_store.TABLES)
    [finding] = [each for each in await check_surroundings(database) if each.check == "partitions"]
    assert finding.found == "7 days ahead are prepared, and every row has its day."
    await a_delivery(database, await a_webhook(database), at=micros() + 30 * DAY)
    [finding] = [each for each in await check_surroundings(database) if each.check == "partitions"]
    assert "webhook_deliveries (1)" in finding.found
    metrics = PartitionMetrics(database, partitions_store.TABLES)
    async with database.read() as conn:
        await metrics.count(conn)
    ahead, stray = metrics.collect()
    assert {each.value for each in ahead.samples} == {7.0}
    assert {each.labels["table"]: each.value for each in stray.samples}["webhook_deliveries"] == 1
