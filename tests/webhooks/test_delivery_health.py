"""A failing target is probed, its owner is notified, and in the end it is suspended."""

import json
from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Database
from hublet.events import WebhookFailing, WebhookRecovered, WebhookSuspended
from webhooks.engine_rows import (
    a_webhook,
    deliveries_of,
    delivering,
    enable,
    events_of,
    lane_of,
    settle,
    states_of,
    trigger,
    trigger_many,
)
from webhooks.receivers import answer, in_turn, receiving

EVENTS = (WebhookFailing, WebhookRecovered, WebhookSuspended)
DAILY = 10_000_000


async def published(database: Database) -> list[int | str]:
    """Return the percentages and the kinds of the events that were published."""
    steps: list[int | str] = []
    for kind in EVENTS:
        for body in await events_of(database, kind):
            event = json.loads(body)
            steps.append(event["percent"] if kind is WebhookFailing else kind.kind)
    return steps


async def test_a_target_that_fails_four_times_is_only_probed(database: Database) -> None:
    async with receiving(answer(500)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=4)
        await settle(deliverer)
        assert len(receiver.requests) == 4
        await trigger_many(database, [webhook_id], count=20)
        await settle(deliverer)
        assert len(receiver.requests) == 4, "What arrives now waits."
        probes = []
        for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
            clock.move(timedelta(minutes=minutes) - timedelta(seconds=5))
            await settle(deliverer)
            early = len(receiver.requests)
            clock.move(timedelta(seconds=10))
            await settle(deliverer)
            probes.append((early, len(receiver.requests)))

    assert probes == [(number, number + 1) for number in range(4, 12)]
    assert {each["state"] for each in await deliveries_of(database, webhook_id)} == {"pending"}
    assert await published(database) == [0]


async def test_the_first_success_opens_the_lane_and_everything_due_goes(
    database: Database,
) -> None:
    answers = in_turn(*[answer(500)] * 4, answer(200))
    async with receiving(answers) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=4)
        await settle(deliverer)
        await trigger_many(database, [webhook_id], count=300)
        await settle(deliverer)
        clock.move(timedelta(seconds=61))
        await settle(deliverer)

    assert {each["state"] for each in await deliveries_of(database, webhook_id)} == {"delivered"}
    assert len(receiver.requests) == 4 + 304
    lane = await lane_of(database, webhook_id)
    assert (lane["failures"], lane["degraded_since"], lane["probes"], lane["told"]) == (
        0, None, 0, None,
    )  # fmt: skip
    assert await published(database) == [0, "webhook.recovered"]


async def test_what_arrives_while_a_degraded_lane_waits_for_a_retry_is_the_next_probe(
    database: Database,
) -> None:
    async with receiving(answer(500)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id)
        # The fourth attempt fails after some minutes, and the fifth lies half an hour ahead.
        for seconds in (0, 6, 36, 360, 61):
            clock.move(timedelta(seconds=seconds))
            await settle(deliverer)
        assert len(receiver.requests) == 4
        await trigger(database, webhook_id)
        await settle(deliverer)
        assert len(receiver.requests) == 4
        clock.move(timedelta(seconds=61))
        await settle(deliverer)
    assert len(receiver.requests) == 5
    assert [each["attempts"] for each in await deliveries_of(database, webhook_id)] == [4, 1]


async def test_what_is_queued_when_a_target_degrades_is_handed_back(database: Database) -> None:
    async with receiving(answer(500)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=100)
        await settle(deliverer)
        assert len(receiver.requests) <= 12
        async with database.read() as conn:
            held = await conn.fetch_value(
                "SELECT count(*) FROM webhook_deliveries WHERE claimed_by IS NOT NULL"
            )
    assert held == 0
    assert {each["state"] for each in await deliveries_of(database, webhook_id)} == {"pending"}


async def test_five_days_without_success_suspend_a_webhook(database: Database) -> None:
    async with (
        receiving(answer(500)) as receiver,
        delivering(database, daily_triggers=DAILY) as deliverer,
    ):
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=12)
        await settle(deliverer)
        hours = 0
        while "webhook.suspended" not in await published(database):
            hours += 2
            assert hours < 150
            clock.move(timedelta(hours=2))
            await trigger(database, webhook_id)
            await settle(deliverer)
        # What was claimed in the moment of the suspension is looked at once more.
        clock.move(timedelta(hours=2))
        await settle(deliverer)

    assert 120 <= hours <= 124
    assert await published(database) == [0, 50, 90, "webhook.suspended"]
    states = await states_of(database, webhook_id)
    assert {state for state, _ in states} == {"failed", "unsent"}
    assert {reason for _, reason in states} == {"exhausted", "suspended-after-failure"}
    assert (await lane_of(database, webhook_id))["next_due_at"] is None


async def test_enabling_again_delivers_what_comes_from_then_on(database: Database) -> None:
    answers = in_turn(answer(410), answer(200))
    async with receiving(answers) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id)
        await settle(deliverer)
        await enable(database, webhook_id)
        await trigger(database, webhook_id)
        await settle(deliverer)
    assert len(receiver.requests) == 2
    assert await states_of(database, webhook_id) == [("failed", "gone"), ("delivered", None)]


async def test_a_new_worker_knows_that_a_target_is_degraded(database: Database) -> None:
    async with receiving(answer(500)) as receiver:
        async with delivering(database) as deliverer:
            webhook_id = await a_webhook(database, receiver.url)
            await trigger_many(database, [webhook_id], count=4)
            await settle(deliverer)
        async with delivering(database) as deliverer:
            await trigger_many(database, [webhook_id], count=5)
            await settle(deliverer)
            assert len(receiver.requests) == 4
            clock.move(timedelta(seconds=62))
            await settle(deliverer)
            assert len(receiver.requests) == 5


async def test_a_ping_says_nothing_about_health_and_goes_to_a_degraded_target(
    database: Database,
) -> None:
    async with receiving(answer(500)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=4)
        await settle(deliverer)
        before = await lane_of(database, webhook_id)
        await trigger(database, webhook_id, ping=True)
        await settle(deliverer)
        after = await lane_of(database, webhook_id)
    assert len(receiver.requests) == 5
    assert after == before
    assert (await deliveries_of(database, webhook_id))[-1] == {
        "state": "failed", "reason": None, "tries": 1, "attempts": 1, "status": 500,
    }  # fmt: skip
