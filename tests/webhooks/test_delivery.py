"""Deliveries arrive: once, signed, and with everything about them kept."""

import json
from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Database
from hublet.webhooks.records import WebhookSecrets
from webhooks.engine_rows import (
    a_webhook,
    attempts_of,
    deliveries_of,
    delivering,
    lane_of,
    settle,
    trigger,
    trigger_many,
)
from webhooks.receivers import answer, receiving


async def test_a_delivery_arrives_with_its_payload_and_its_proof(database: Database) -> None:
    async with receiving(answer(200, body="thanks")) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(
            database, f"{receiver.url}?key=hidden#there", secrets=WebhookSecrets(current="s3cret")
        )
        [delivery_id] = await trigger(database, webhook_id)
        await settle(deliverer)

    [request] = receiver.requests
    assert request.line == "POST /hook?key=hidden HTTP/1.1"
    assert json.loads(request.body) == {
        "event": {"action": "update", "scope": "repo.content"},
        "repo": {"name": "ada/engine"},
        "webhook": {"id": webhook_id, "version": 3},
    }
    assert request.headers["x-webhook-secret"] == "s3cret"
    assert request.headers["webhook-id"] == delivery_id
    assert request.headers["x-webhook-attempt"] == "1"
    assert await deliveries_of(database, webhook_id) == [
        {"state": "delivered", "reason": None, "tries": 1, "attempts": 1, "status": 200}
    ]
    assert await attempts_of(database, delivery_id) == [
        {
            "number": 1,
            "target": receiver.url,
            "job_id": None,
            "status": 200,
            "reason": None,
            "detail": None,
            "response": b"thanks",
        }
    ]


async def test_each_of_many_deliveries_arrives_once(database: Database) -> None:
    async with receiving() as receiver, delivering(database) as deliverer:
        webhooks = [await a_webhook(database, receiver.url) for _ in range(5)]
        groups = await trigger_many(database, webhooks, count=120)
        await settle(deliverer)

    sent = sorted(request.headers["webhook-id"] for request in receiver.requests)
    assert sent == sorted(each for group in groups for each in group)
    for webhook_id in webhooks:
        assert {d["state"] for d in await deliveries_of(database, webhook_id)} == {"delivered"}
        assert (await lane_of(database, webhook_id))["day_count"] == 120


async def test_the_last_success_of_a_busy_target_is_noted_now_and_then(database: Database) -> None:
    noted: list[int] = []
    async with receiving() as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        for seconds in (0, 5, 11):
            clock.move(timedelta(seconds=seconds))
            await trigger(database, webhook_id)
            await settle(deliverer)
            noted.append((await lane_of(database, webhook_id))["last_success_at"])
    assert noted[0] == noted[1] < noted[2]
