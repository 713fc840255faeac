"""Several workers, and workers that stop or die: nothing is lost, nothing is sent by two."""

import asyncio

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.webhooks.delivery import claims, store
from hublet.webhooks.delivery.engine import DeliveryEngine
from outgoing_servers import Stranger
from scratch_database import wait_until
from webhooks.engine_rows import (
    a_webhook,
    deliveries_of,
    delivering,
    lane_of,
    set_webhooks,
    settle,
    states_of,
    trigger,
    trigger_many,
)
from webhooks.receivers import receiving
from workers import set_grace


def sent(receiver: Stranger) -> list[str]:
    return sorted(request.headers["webhook-id"] for request in receiver.requests)


async def has_received(receiver: Stranger, count: int = 1) -> bool:
    return len(receiver.requests) >= count


async def held(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value(
            "SELECT count(*) FROM webhook_deliveries WHERE claimed_by IS NOT NULL"
        )
    return count


async def test_two_workers_share_and_send_nothing_twice(database: Database) -> None:
    async with (
        receiving() as receiver,
        delivering(database) as one,
        delivering(database) as other,
    ):
        webhooks = [await a_webhook(database, receiver.url) for _ in range(4)]
        for _ in range(5):
            await trigger_many(database, webhooks, count=30)
        await settle(one)
        await settle(other)
        await settle(one)
    assert len(sent(receiver)) == len(set(sent(receiver))) == 600
    for webhook_id in webhooks:
        assert {each["state"] for each in await deliveries_of(database, webhook_id)} == {
            "delivered"
        }


async def test_a_stop_ends_what_is_in_flight_and_hands_back_the_rest(database: Database) -> None:
    async with receiving(seconds=0.2) as receiver:
        async with delivering(database):
            webhook_id = await a_webhook(database, receiver.url)
            await trigger_many(database, [webhook_id], count=50)
            await wait_until(lambda: has_received(receiver, 8))
        states = [state for state, _ in await states_of(database, webhook_id)]
        assert states.count("delivered") == len(receiver.requests)
        assert set(states) == {"delivered", "pending"}
        assert await held(database) == 0
        async with delivering(database) as deliverer:
            await settle(deliverer)
    assert len(sent(receiver)) == len(set(sent(receiver))) == 50


async def test_what_does_not_end_within_the_grace_time_is_sent_again(database: Database) -> None:
    set_grace(database, 0.1)
    async with receiving(seconds=30) as slow, receiving() as receiver:
        async with delivering(database):
            webhook_id = await a_webhook(database, slow.url)
            await trigger(database, webhook_id)
            await wait_until(lambda: has_received(slow))
        assert await deliveries_of(database, webhook_id) == [
            {"state": "pending", "reason": None, "tries": 0, "attempts": 0, "status": None}
        ]
        async with database.transaction() as conn:
            await conn.execute("UPDATE webhooks SET url = $1, updated_at = 1", receiver.url)
        async with delivering(database) as deliverer:
            await settle(deliverer)
    assert sent(receiver) == sent(slow)


async def crashed(database: Database, receiver: Stranger) -> str:
    """Let a worker die with deliveries in its hands; return its name."""
    set_webhooks(database)
    worker = new_object_id()
    deliverer = DeliveryEngine(database, worker)
    deliverer.start()
    await wait_until(lambda: has_received(receiver))
    await deliverer.abandon()
    return worker


async def test_what_a_dead_worker_held_is_taken_over(database: Database) -> None:
    async with receiving(seconds=30) as slow, receiving() as receiver:
        webhook_id = await a_webhook(database, slow.url)
        await trigger_many(database, [webhook_id], count=20)
        worker = await crashed(database, slow)
        assert await held(database) == 20
        await a_url(database, receiver.url)
        async with delivering(database) as deliverer:
            await settle(deliverer)
            assert receiver.requests == []
            async with database.transaction() as conn:
                assert await claims.release(conn, worker=worker) == 20
            await settle(deliverer)
    assert len(receiver.requests) == 20
    assert {each["attempts"] for each in await deliveries_of(database, webhook_id)} == {1}


async def a_url(database: Database, url: str) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE webhooks SET url = $1, updated_at = 1", url)


async def silence(database: Database) -> None:
    """Let every lease have run out a moment ago."""
    async with database.transaction() as conn:
        await conn.execute("UPDATE webhook_deliveries SET claimed_until = 1")


async def test_a_worker_that_gave_no_sign_of_life_loses_what_it_held(
    database: Database, monkeypatch: object
) -> None:
    async with receiving(seconds=30) as slow, receiving() as receiver:
        webhook_id = await a_webhook(database, slow.url)
        await trigger_many(database, [webhook_id], count=20)
        await crashed(database, slow)
        await a_url(database, receiver.url)
        async with delivering(database) as deliverer:
            await keep(deliverer)
            assert await held(database) == 20
            await silence(database)
            await keep(deliverer)
            await settle(deliverer)
    assert len(receiver.requests) == 20


async def keep(deliverer: DeliveryEngine) -> None:
    """Let the heart beat as if the last time was long ago."""
    await deliverer._leases.extend()  # noqa: SLF001 - nobody waits that long in a test.


async def test_a_heart_that_beats_keeps_what_is_held(database: Database) -> None:
    async with receiving(seconds=0.5) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger_many(database, [webhook_id], count=4)
        await wait_until(lambda: has_received(receiver, 4))
        await silence(database)
        await keep(deliverer)
        async with database.read() as conn:
            assert not await store.has_expired(conn)
        assert await held(database) == 4
        await settle(deliverer)
    assert len(receiver.requests) == 4


async def test_a_result_of_a_delivery_that_another_worker_took_is_not_written(
    database: Database,
) -> None:
    async with receiving(seconds=0.3) as receiver, delivering(database) as deliverer:
        webhook_id = await a_webhook(database, receiver.url)
        await trigger(database, webhook_id)
        await wait_until(lambda: has_received(receiver))
        async with database.transaction() as conn:
            await conn.execute("UPDATE webhook_deliveries SET claimed_by = 'another'")
        await asyncio.sleep(0.5)
        await settle(deliverer)
    assert await deliveries_of(database, webhook_id) == [
        {"state": "pending", "reason": None, "tries": 0, "attempts": 0, "status": None}
    ]
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM webhook_attempts") == 0
    assert (await lane_of(database, webhook_id))["last_success_at"] is None
