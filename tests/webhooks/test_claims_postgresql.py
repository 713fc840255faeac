"""Claims of two workers at the same time, on PostgreSQL: disjoint, counted once, never in each other's way."""

import asyncio

import pytest

from hublet.core.database import Connection, Database
from hublet.events import WebhookThrottled
from hublet.webhooks.delivery import lanes_store, store
from hublet.webhooks.delivery.claims import ClaimedBatch, claim_due, claim_fresh
from hublet.webhooks.delivery.lanes import Lanes
from patience import SOON_SECONDS
from webhooks.engine_rows import (
    a_webhook,
    delivering,
    events_of,
    lane_of,
    set_webhooks,
    settle,
    states_of,
    trigger,
    trigger_many,
)
from webhooks.receivers import receiving

pytestmark = pytest.mark.parametrize("settings", ["postgresql"], indirect=True)

URL = "http://127.0.0.1:9/hook"


async def claim_as(
    conn: Connection, worker: str, *, lanes: Lanes | None = None, concurrency: int = 2
) -> ClaimedBatch:
    batch = ClaimedBatch()
    await claim_fresh(conn, lanes or Lanes(concurrency=concurrency), batch, worker=worker)
    return batch


def ids(batch: ClaimedBatch) -> set[str]:
    return {each.id for each in batch.deliveries}


async def test_claims_of_two_workers_are_disjoint(database: Database) -> None:
    webhooks = [await a_webhook(database, URL) for _ in range(2)]
    await trigger_many(database, webhooks[:1], count=8)
    await trigger_many(database, webhooks[1:], count=8)
    async with (
        asyncio.timeout(SOON_SECONDS),
        database.transaction() as one,
        database.transaction() as other,
    ):
        # Neither is committed, and yet they take different ones and wait for nothing.
        first = await claim_as(one, "one")
        second = await claim_as(other, "other")
    assert len(ids(first)) == len(ids(second)) == 8
    assert not ids(first) & ids(second)


async def test_two_workers_that_count_for_the_same_webhooks_never_wait_in_a_circle(
    database: Database,
) -> None:
    webhooks = [await a_webhook(database, URL) for _ in range(12)]
    for order in (webhooks, webhooks[::-1]):
        await trigger_many(database, order, count=4)

    async def claim(worker: str) -> None:
        for _ in range(6):
            async with database.transaction() as conn:
                await claim_as(conn, worker)

    async with asyncio.timeout(SOON_SECONDS):
        await asyncio.gather(*(claim(worker) for worker in ("one", "other", "third")))
    assert {(await lane_of(database, each))["day_count"] for each in webhooks} == {8}


async def test_events_are_read_before_the_lanes_are_locked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await a_webhook(database, URL)
    await trigger(database, webhook_id)
    read, counts = store.list_events, []

    async def look(conn: Connection, event_ids: set[str]) -> object:
        # Another one counts for the same webhook, and commits meanwhile.
        async with asyncio.timeout(SOON_SECONDS), database.transaction() as other:
            counts.append(await lanes_store.count_triggers(other, [webhook_id], []))
        return await read(conn, event_ids)

    monkeypatch.setattr(store, "list_events", look)
    async with database.transaction() as conn:
        batch = await claim_as(conn, "me")
    assert counts[0][webhook_id].day_count == 1
    assert batch.lanes[webhook_id].day_count == 2


async def test_who_claims_what_is_due_passes_over_lanes_that_another_has_locked(
    database: Database,
) -> None:
    webhooks = [await a_webhook(database, URL) for _ in range(2)]
    await trigger_many(database, webhooks, count=3)
    async with database.transaction() as conn:
        taken = await claim_as(conn, "dead", concurrency=8)
        await store.release_all(conn, worker="dead")
        await lanes_store.make_due(conn, webhooks)
    async with asyncio.timeout(SOON_SECONDS), database.transaction() as one:
        await lanes_store.lock_lanes(one, webhooks[:1])
        async with database.transaction() as other:
            batch = ClaimedBatch()
            await claim_due(other, Lanes(concurrency=8), batch, worker="other")
    assert len(taken.deliveries) == 6
    assert [each.webhook_id for each in batch.deliveries] == [webhooks[1]] * 3


async def test_two_workers_together_send_no_more_than_the_daily_limit(database: Database) -> None:
    set_webhooks(database, daily_triggers=10)
    async with (
        receiving() as receiver,
        delivering(database, daily_triggers=10) as one,
        delivering(database, daily_triggers=10) as other,
    ):
        webhook_id = await a_webhook(database, receiver.url)
        for _ in range(8):
            await trigger_many(database, [webhook_id], count=5)
        for engine in (one, other, one):
            await settle(engine)
    states = await states_of(database, webhook_id)
    assert states.count(("delivered", None)) == len(receiver.requests) == 10
    assert states.count(("unsent", "throttled")) == 30
    assert len(await events_of(database, WebhookThrottled)) == 1


async def test_a_ping_alone_makes_a_lane_and_counts_for_nothing(database: Database) -> None:
    webhook_id = await a_webhook(database, URL)
    await trigger(database, webhook_id, ping=True)
    async with database.transaction() as conn:
        batch = await claim_as(conn, "me")
    assert batch.lanes[webhook_id].day_count == 0
    assert (await lane_of(database, webhook_id))["last_trigger_at"] is None
