"""A failed attempt is kept with its reason and tried again, until the schedule is spent."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import WebhookFailing, WebhookSuspended
from hublet.webhooks.delivery.backoff import SCHEDULE, SECOND
from hublet.webhooks.delivery.engine import DeliveryEngine
from outgoing_servers import Talk, serving
from webhooks.engine_rows import (
    REPO,
    a_webhook,
    attempts_of,
    deliveries_of,
    delivering,
    events_of,
    lane_of,
    set_webhooks,
    settle,
    states_of,
    trigger,
)
from webhooks.receivers import answer, in_turn, receiving


async def due_at(database: Database, delivery_id: str) -> int:
    async with database.read() as conn:
        due: int = await conn.fetch_value(
            "SELECT due_at FROM webhook_deliveries WHERE id = $1", delivery_id
        )
    return due


async def test_the_schedule_runs_for_76_hours_and_then_it_is_given_up(database: Database) -> None:
    async with receiving(answer(500)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
        for number, wait in enumerate(SCHEDULE[1:], start=1):
            left = await due_at(database, delivery_id) - clock.micros()
            assert 0.7 * wait < left <= 1.2 * wait
            clock.move(timedelta(microseconds=left) - timedelta(seconds=2))
            await settle(deliverer)
            assert len(receiver.requests) == number, "It came too early."
            clock.move(timedelta(seconds=3))
            await settle(deliverer)
            assert len(receiver.requests) == number + 1

    assert [r.headers["x-webhook-attempt"] for r in receiver.requests] == [
        str(number) for number in range(1, 12)
    ]
    assert {r.body for r in receiver.requests} == {receiver.requests[0].body}
    assert len({r.headers["webhook-id"] for r in receiver.requests}) == 1
    assert len({r.headers["webhook-timestamp"] for r in receiver.requests}) == 11
    assert await deliveries_of(database, webhook_id) == [
        {"state": "failed", "reason": "exhausted", "tries": 11, "attempts": 11, "status": 500}
    ]
    assert [each["number"] for each in await attempts_of(database, delivery_id)] == list(
        range(1, 12)
    )
    assert (await lane_of(database, webhook_id))["exhausted"] == 1


async def test_a_retry_that_arrives_ends_it(database: Database) -> None:
    answers = in_turn(answer(503, body="busy"), answer(204))
    async with receiving(answers) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
        assert await deliveries_of(database, webhook_id) == [
            {"state": "pending", "reason": None, "tries": 1, "attempts": 1, "status": 503}
        ]
        wait = await due_at(database, delivery_id) - clock.micros()
        assert 3 * SECOND < wait <= 6 * SECOND
        clock.move(timedelta(seconds=7))
        await settle(deliverer)

    assert await deliveries_of(database, webhook_id) == [
        {"state": "delivered", "reason": None, "tries": 2, "attempts": 2, "status": 204}
    ]
    first, second = await attempts_of(database, delivery_id)
    assert (first["status"], first["detail"]) == (503, "The target failed with 503.")
    assert first["response"] == b"busy"
    assert (second["status"], second["detail"], second["response"]) == (204, None, None)
    lane = await lane_of(database, webhook_id)
    assert (lane["failures"], lane["failing_since"]) == (0, None)


async def test_a_target_that_asks_for_a_longer_wait_gets_it(database: Database) -> None:
    async with (
        receiving(answer(429, "Retry-After: 3600")) as receiver,
        delivering(database) as deliverer,
    ):
        webhook_id = await a_webhook(database, receiver.url)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
    wait = await due_at(database, delivery_id) - clock.micros()
    assert 3590 * SECOND < wait <= 3600 * SECOND


async def test_a_target_that_is_gone_for_good_is_suspended_at_once(database: Database) -> None:
    async with receiving(answer(410)) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id)
        await settle(deliverer)
        await trigger(database, webhook_id)
        await settle(deliverer)

    assert len(receiver.requests) == 1
    assert await states_of(database, webhook_id) == [
        ("failed", "gone"),
        ("unsent", "suspended-after-failure"),
    ]
    [event] = await events_of(database, WebhookSuspended, WebhookFailing)
    published = json.loads(event)
    assert (published["webhook_id"], published["status"], published["reason"]) == (
        webhook_id,
        410,
        None,
    )
    async with database.read() as conn:
        state = await conn.fetch_value("SELECT state FROM webhooks WHERE id = $1", webhook_id)
    assert state == "suspended-after-failure"


@pytest.mark.parametrize(
    ("said", "kind", "detail"),
    [
        pytest.param(
            answer(302, "Location: https://elsewhere.example/path?key=hidden"),
            "model",
            "The target redirected to elsewhere.example; this is not followed.",
            id="a redirect names the host only",
        ),
        pytest.param(
            answer(307), "model", "The target redirected; this is not followed.", id="to nowhere"
        ),
        pytest.param(
            answer(401),
            "model",
            "The target refused with 401: the secret it expects may be another one.",
            id="an unknown secret",
        ),
        pytest.param(
            answer(403),
            "model",
            "The target refused with 403: the secret it expects may be another one.",
            id="a wrong secret",
        ),
        pytest.param(answer(404), "model", "The target refused with 404.", id="not found"),
        pytest.param(answer(422), "model", "The target refused with 422.", id="not understood"),
        pytest.param(
            answer(422),
            "bucket",
            "The target refused with 422: old receivers know only models, datasets and spaces, "
            "and this is about a bucket.",
            id="an old receiver",
        ),
    ],
)
async def test_the_owner_reads_what_to_mend(
    database: Database, said: bytes, kind: str, detail: str
) -> None:
    async with receiving(said) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        [delivery_id] = await trigger(database, webhook_id, repo=replace(REPO, type=kind))
        await settle(deliverer)
    [attempt] = await attempts_of(database, delivery_id)
    assert (attempt["detail"], attempt["reason"]) == (detail, None)
    assert await states_of(database, webhook_id) == [("pending", None)]


async def _never_answer(talk: Talk) -> None:
    await talk.listen()
    await asyncio.sleep(60)


async def test_a_target_that_never_answers_is_left_after_the_deadline(database: Database) -> None:
    async with (
        serving(_never_answer) as receiver,
        delivering(database, deadline_seconds=0.3) as deliverer,
    ):
        webhook_id = await a_webhook(database, receiver.url)
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)
    [attempt] = await attempts_of(database, delivery_id)
    assert (attempt["reason"], attempt["status"]) == ("timeout", None)


async def test_a_blocked_target_is_shown_with_its_reason_and_tried_again(
    database: Database,
) -> None:
    async with receiving() as receiver:
        set_webhooks(database)
        settings = database.hub.settings
        safe = replace(settings, server=replace(settings.server, test_mode=False))
        database.hub = replace(database.hub, settings=safe)
        webhook_id = await a_webhook(database, receiver.url)
        [delivery_id] = await trigger(database, webhook_id)
        deliverer = DeliveryEngine(database, new_object_id())
        deliverer.start()
        await settle(deliverer)
        await deliverer.stop()
    assert receiver.connections == 0
    [attempt] = await attempts_of(database, delivery_id)
    assert (attempt["reason"], attempt["response"]) == ("blocked-target", None)
    assert await states_of(database, webhook_id) == [("pending", "blocked-target")]
