"""A slow or dead target delays nobody else."""

import asyncio
from collections import Counter

from hublet.core.database import Database
from hublet.webhooks.delivery.lanes import PER_WEBHOOK
from outgoing_servers import Request, Talk, serving
from patience import SOON_SECONDS
from scratch_database import wait_until
from webhooks.engine_rows import a_webhook, deliveries_of, delivering, settle, trigger, trigger_many
from webhooks.receivers import answer, receiving


async def _swallow(talk: Talk) -> None:
    """Take everything, answer nothing: the black hole."""
    while True:
        await talk.listen()


async def test_healthy_targets_are_served_beside_a_dead_and_a_slow_one(database: Database) -> None:
    async with (
        serving(_swallow) as dead,
        receiving(seconds=2) as slow,
        receiving() as healthy,
        delivering(database, deadline_seconds=SOON_SECONDS),
    ):
        dead_id = await a_webhook(database, dead.url)
        slow_id = await a_webhook(database, slow.url)
        healthy_id = await a_webhook(database, healthy.url)
        await trigger_many(database, [dead_id, slow_id], count=100)
        await trigger_many(database, [healthy_id], count=100)
        # Long before the dead one is given up.
        await wait_until(lambda: _has_received(healthy.requests, 100))
        assert len(dead.requests) == PER_WEBHOOK
        assert 0 < len(slow.requests) < 100


async def test_deep_backlogs_of_dead_targets_keep_nobody_waiting(database: Database) -> None:
    async with (
        serving(_swallow) as dead,
        receiving() as healthy,
        delivering(database, deadline_seconds=SOON_SECONDS, concurrency=64),
    ):
        holes = [await a_webhook(database, f"{dead.url}/{number}") for number in range(4)]
        await trigger_many(database, holes, count=150)
        await wait_until(lambda: _has_received(dead.requests, 16))
        healthy_id = await a_webhook(database, healthy.url)
        await trigger_many(database, [healthy_id], count=50)
        await wait_until(lambda: _has_received(healthy.requests, 50))
        assert len({request.line for request in dead.requests}) == 4
        assert len(dead.requests) <= 4 * PER_WEBHOOK


async def _has_received(requests: list[Request], count: int) -> bool:
    return len(requests) >= count


async def test_no_target_has_more_than_its_share_at_once(database: Database) -> None:
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def behave(talk: Talk) -> None:
        while True:
            path = (await talk.listen()).line
            inside[path] += 1
            most[path] = max(most[path], inside[path])
            most["all"] = max(most["all"], inside.total())
            await asyncio.sleep(0.02)
            inside[path] -= 1
            await talk.say(answer(200))

    async with serving(behave) as receiver, delivering(database) as deliverer:
        webhooks = [await a_webhook(database, f"{receiver.url}/{n}") for n in range(4)]
        await trigger_many(database, webhooks, count=20)
        await trigger_many(database, webhooks[:1], count=40)
        await settle(deliverer)
    assert max(most.values()) == most["all"] == 16
    assert most["POST /hook/0 HTTP/1.1"] == 8


async def test_a_worker_makes_only_so_many_attempts_at_once(database: Database) -> None:
    async with (
        serving(_swallow) as dead,
        delivering(database, deadline_seconds=0.4, concurrency=3) as deliverer,
    ):
        webhooks = [await a_webhook(database, dead.url) for _ in range(4)]
        await trigger(database, *webhooks)
        await wait_until(lambda: _has_received(dead.requests, 3))
        await asyncio.sleep(0.05)
        assert len(dead.requests) == 3
        await settle(deliverer)
        assert len(dead.requests) == 4


async def test_a_burst_larger_than_what_is_held_arrives_whole(database: Database) -> None:
    async with receiving() as receiver, delivering(database, concurrency=8) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=400)
        await settle(deliverer)
    assert (
        len({r.headers["webhook-id"] for r in receiver.requests}) == len(receiver.requests) == 400
    )
    assert {each["attempts"] for each in await deliveries_of(database, webhook_id)} == {1}
