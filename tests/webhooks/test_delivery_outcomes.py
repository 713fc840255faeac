"""Results are written in groups, whatever the database does meanwhile; and they are counted."""

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from hublet.core.clock import micros
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.leases import WorkerPresence
from hublet.webhooks.delivery import committer, dispatcher
from hublet.webhooks.delivery import outcomes as delivery_outcomes
from hublet.webhooks.delivery.claims import ClaimedBatch, claim_fresh
from hublet.webhooks.delivery.lanes import Lanes
from hublet.webhooks.records import Outcome
from outgoing_servers import Stranger
from scratch_database import wait_until
from webhooks.engine_rows import (
    a_webhook,
    attempts_of,
    deliveries_of,
    delivering,
    lane_of,
    set_webhooks,
    settle,
    states_of,
    trigger,
    trigger_many,
)
from webhooks.receivers import answer, receiving
from workers import running_workers


async def test_results_wait_for_a_database_that_is_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = delivery_outcomes.write_outcomes
    failures = 2

    async def write(conn: Connection, *given: Any, **named: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise DatabaseUnavailable("the disk is full")
        return await real(conn, *given, **named)

    monkeypatch.setattr(committer, "write_outcomes", write)
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=3)
        with capture_logs() as logs:
            await settle(deliverer)
    assert len(receiver.requests) == 3, "What was sent is not sent again."
    assert [each["attempts"] for each in await deliveries_of(database, webhook_id)] == [1, 1, 1]
    assert [line["event"] for line in logs] == ["results wait for the database"] * 2


async def test_one_result_that_cannot_be_written_does_not_hold_up_the_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = delivery_outcomes.write_outcomes
    poison: list[str] = []

    async def write(conn: Connection, outcomes: Any, *given: Any, **named: Any) -> Any:
        for each in outcomes:
            if each.delivery.id in poison and each.attempt.reason != "internal-error":
                raise ValueError("No database takes this.")
        return await real(conn, outcomes, *given, **named)

    monkeypatch.setattr(committer, "write_outcomes", write)
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        groups = await trigger_many(database, [webhook_id], count=9)
        poison += groups[4]
        with capture_logs() as logs:
            await settle(deliverer)
    states = await states_of(database, webhook_id)
    assert states[4] == ("pending", "internal-error")
    assert states[:4] + states[5:] == [("delivered", None)] * 8
    [attempt] = await attempts_of(database, groups[4][0])
    assert (attempt["reason"], attempt["detail"]) == (
        "internal-error",
        "The hub could not keep what became of this attempt.",
    )
    assert "results could not be written" in {line["event"] for line in logs}


async def test_while_results_cannot_be_written_little_more_is_sent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def write(conn: Connection, *given: Any, **named: Any) -> Any:
        await gate.wait()
        return await delivery_outcomes.write_outcomes(conn, *given, **named)

    monkeypatch.setattr(committer, "write_outcomes", write)
    monkeypatch.setattr(dispatcher, "MOST_UNWRITTEN", 8)
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=100)
        await wait_until(lambda: _has_received(receiver, 8))
        await asyncio.sleep(0.5)
        # Two groups that wait, and what was in flight when the second became full.
        assert len(receiver.requests) <= 16
        gate.set()
        await settle(deliverer)
    assert len(receiver.requests) == 100


async def test_what_is_handed_back_is_looked_for(database: Database) -> None:
    webhook_id = await a_webhook(database, "http://127.0.0.1:9/hook")
    await trigger(database, webhook_id)
    taken = ClaimedBatch()
    async with database.transaction() as conn:
        await claim_fresh(conn, Lanes(concurrency=1), taken, worker="me")
    async with database.transaction() as conn:
        await delivery_outcomes.write_outcomes(
            conn, [Outcome(delivery=taken.deliveries[0])], {}, worker="me"
        )
    assert await deliveries_of(database, webhook_id) == [
        {"state": "pending", "reason": None, "tries": 0, "attempts": 0, "status": None}
    ]
    due = (await lane_of(database, webhook_id))["next_due_at"]
    assert due is not None
    assert due <= micros()


async def test_deliveries_are_counted(database: Database) -> None:
    async with (
        receiving(
            lambda r: answer(500 if r.line.startswith("POST /hook/bad") else 200)
        ) as receiver,
        delivering(database, daily_triggers=2) as deliverer,
    ):
        good = await a_webhook(database, receiver.url)
        bad = await a_webhook(database, f"{receiver.url}/bad")
        await trigger(database, good, bad)
        await settle(deliverer)
        await trigger(database, good)
        await settle(deliverer)
    registry = CollectorRegistry()
    registry.register(deliverer.metrics)
    text = generate_latest(registry).decode()
    for line in (
        'hublet_webhook_deliveries_total{outcome="delivered"} 2.0',
        'hublet_webhook_deliveries_total{outcome="failed"} 1.0',
        'hublet_webhook_connections_total{kind="new"} 2.0',
        'hublet_webhook_connections_total{kind="reused"} 1.0',
        "hublet_webhook_in_flight 0.0",
        "hublet_webhook_delay_seconds_count 3.0",
        'hublet_webhook_commit_size_bucket{le="+Inf"} 2.0',
        "hublet_webhook_commit_size_sum 3.0",
    ):
        assert line in text.splitlines()


async def test_a_worker_delivers_and_takes_over_from_a_dead_neighbour(database: Database) -> None:
    set_webhooks(database)
    async with receiving() as receiver:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=5)
        async with database.transaction() as conn:
            await conn.execute(
                "UPDATE webhook_deliveries SET state = 'pending', claimed_by = 'dead', "
                "claimed_until = $1",
                2**62,
            )
            await conn.execute("INSERT INTO webhook_lanes (webhook_id) VALUES ($1)", webhook_id)
        WorkerPresence(database.hub.settings.database.data_dir / "workers", "dead").vanish()
        async with running_workers(database):

            async def all_arrived() -> bool:
                return len(receiver.requests) == 5

            await wait_until(all_arrived)
    assert await states_of(database, webhook_id) == [("delivered", None)] * 5


async def _has_received(receiver: Stranger, count: int) -> bool:
    return len(receiver.requests) >= count
