"""Deliveries that ended long ago are forgotten, and nothing else."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.first_start import prepare
from hublet.webhooks.activity import service
from people import Headers
from webhooks.recorded_deliveries import DAY, SECOND, a_delivery, an_attempt, an_event
from webhooks.webhook_calls import create
from workers import drain


@pytest.fixture
async def webhook_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    webhook_id: str = (await create(client, ada))["id"]
    return webhook_id


async def ids_in(database: Database, table: str) -> list[str]:
    column = "delivery_id" if table == "webhook_attempts" else "id"
    async with database.read() as conn:
        rows = await conn.fetch_all(f"SELECT {column} AS id FROM {table} ORDER BY {column}")
    return [row["id"] for row in rows]


def days_ago(days: float) -> int:
    return micros() - round(days * DAY)


@pytest.mark.parametrize(
    ("row", "is_kept"),
    [
        pytest.param({"state": "delivered", "finished_at": 31}, False, id="arrived long ago"),
        pytest.param({"state": "failed", "finished_at": 31}, False, id="given up long ago"),
        pytest.param({"state": "unsent", "finished_at": 31}, False, id="not sent long ago"),
        pytest.param({"state": "unsent", "finished_at": None}, False, id="not sent, with no end"),
        pytest.param({"state": "delivered", "finished_at": 29}, True, id="arrived lately"),
        pytest.param({"state": "pending", "finished_at": None}, True, id="still to be tried"),
        pytest.param({"state": "fresh", "finished_at": None}, True, id="not looked at"),
    ],
)
async def test_what_ended_long_ago_is_forgotten(
    database: Database,
    webhook_id: str,
    row: dict[str, Any],
    is_kept: bool,  # noqa: FBT001 - a parameter
) -> None:
    ended = row["finished_at"]
    finished_at = None if ended is None else days_ago(ended)
    delivery_id = await a_delivery(
        database, webhook_id, at=days_ago(40), state=row["state"], finished_at=finished_at
    )

    await service.prune(database)

    assert await ids_in(database, "webhook_deliveries") == [delivery_id] * is_kept
    assert len(await ids_in(database, "webhook_events")) == is_kept


async def test_attempts_go_with_their_delivery(database: Database, webhook_id: str) -> None:
    old = await a_delivery(database, webhook_id, at=days_ago(40))
    young = await a_delivery(database, webhook_id, at=days_ago(1))
    for delivery_id in (old, young):
        await an_attempt(database, delivery_id)
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE webhook_deliveries SET finished_at = $1 WHERE id = $2", days_ago(40), old
        )

    await service.prune(database)

    assert await ids_in(database, "webhook_attempts") == [young]


async def test_an_event_stays_for_as_long_as_somebody_is_told_of_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, webhook_id: str
) -> None:
    other = (await create(client, ada))["id"]
    await a_delivery(database, webhook_id, at=days_ago(40))
    [event_id] = await ids_in(database, "webhook_events")
    waiting = await a_delivery(database, other, at=days_ago(40), state="pending")
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE webhook_deliveries SET event_id = $1 WHERE id = $2", event_id, waiting
        )

    await service.prune(database)

    assert await ids_in(database, "webhook_deliveries") == [waiting]
    assert await ids_in(database, "webhook_events") == [event_id]


async def test_an_event_without_deliveries_is_left_alone_while_it_is_young(
    database: Database,
) -> None:
    await an_event(database, at=days_ago(31))
    young = await an_event(database, at=days_ago(29))

    await service.prune(database)

    assert await ids_in(database, "webhook_events") == [young]


async def test_all_batches_are_gone_through(
    database: Database, webhook_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PRUNE_BATCH", 2)
    kept = await a_delivery(database, webhook_id, at=days_ago(50), state="pending")
    for n in range(5):
        await a_delivery(database, webhook_id, at=days_ago(40) + n * SECOND)

    await service.prune(database)

    assert await ids_in(database, "webhook_deliveries") == [kept]
    assert len(await ids_in(database, "webhook_events")) == 1


async def test_a_start_prunes_and_every_day_follows(database: Database, webhook_id: str) -> None:
    await a_delivery(database, webhook_id, at=days_ago(31))
    await prepare(database)
    await prepare(database)
    await drain(database)
    assert await ids_in(database, "webhook_deliveries") == []

    await a_delivery(database, webhook_id, at=days_ago(29.5))
    clock.move(timedelta(days=1, minutes=1))
    await drain(database)

    assert await ids_in(database, "webhook_deliveries") == []
