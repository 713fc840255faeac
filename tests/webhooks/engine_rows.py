"""Webhooks, deliveries and a delivery engine for tests, one line each."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from hublet.core.clock import micros, now
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.core.outbox import Event
from hublet.events import RepoSnapshot
from hublet.webhooks import store
from hublet.webhooks.delivery.engine import DeliveryEngine
from hublet.webhooks.records import (
    DeliveryState,
    Domain,
    WatchedItem,
    WatchedType,
    WebhookRecord,
    WebhookSecrets,
    WebhookState,
)
from hublet.webhooks.sealed_secrets import seal
from hublet.webhooks.triggers.payload import render
from hublet.webhooks.triggers.records import NewDelivery, Trigger
from hublet.webhooks.triggers.store import add_deliveries, add_event
from patience import SOON_SECONDS
from people import a_user

REPO = RepoSnapshot(id="5" * 24, type="model", name="ada/engine", owner_id="6" * 24, private=False)


def set_webhooks(database: Database, **changes: Any) -> None:
    """Change the webhook settings, and allow loopback as test mode does."""
    settings = database.hub.settings
    database.hub = replace(
        database.hub,
        settings=replace(
            settings,
            server=replace(settings.server, test_mode=True),
            webhooks=replace(settings.webhooks, **changes),
        ),
    )


@asynccontextmanager
async def delivering(database: Database, **changes: Any) -> AsyncIterator[DeliveryEngine]:
    """Run a delivery engine for as long as the block takes."""
    set_webhooks(database, **changes)
    deliverer = DeliveryEngine(database, new_object_id())
    deliverer.start()
    try:
        yield deliverer
    finally:
        await deliverer.stop()


async def settle(deliverer: DeliveryEngine) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        await deliverer.settle()


async def a_webhook(
    database: Database,
    url: str | None = None,
    *,
    owner: str = "ada",
    owner_id: str | None = None,
    secrets: WebhookSecrets | None = None,
    **changes: Any,
) -> str:
    """Return the id of a new webhook of this user."""
    user = await a_user(database, owner)
    watched = WatchedItem(type=WatchedType.model, name=REPO.name, target=REPO.id)
    webhook = WebhookRecord(
        id=new_object_id(),
        owner_id=owner_id or user.id,
        creator_id=user.id,
        url=url,
        watched=(watched,),
        domains=tuple(Domain),
        created_at=now(),
    )
    webhook = replace(webhook, **changes)
    sealed = seal(database.hub.keys, webhook.id, secrets or WebhookSecrets())
    async with database.transaction() as conn:
        await store.add(conn, webhook, sealed)
    return webhook.id


async def change(database: Database, webhook_id: str, **columns: Any) -> None:
    """Change columns of a webhook as its management does."""
    columns = {"updated_at": micros()} | columns
    names = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, start=2))
    async with database.transaction() as conn:
        await conn.execute(
            f"UPDATE webhooks SET {names} WHERE id = $1", webhook_id, *columns.values()
        )


async def disable(database: Database, webhook_id: str) -> None:
    async with database.transaction() as conn:
        await store.set_state(conn, webhook_id, WebhookState.disabled)
        await store.withdraw_deliveries(conn, webhook_id)


async def enable(database: Database, webhook_id: str) -> None:
    async with database.transaction() as conn:
        await store.set_state(conn, webhook_id, WebhookState.enabled)
        await store.reset_health(conn, webhook_id)


async def remove(database: Database, webhook_id: str) -> None:
    async with database.transaction() as conn:
        await store.remove(conn, webhook_id)


async def trigger(
    database: Database, *webhook_ids: str, repo: RepoSnapshot = REPO, ping: bool = False
) -> list[str]:
    """Add an event for these webhooks; return the ids of the deliveries."""
    return (await trigger_many(database, webhook_ids, count=1, repo=repo, ping=ping))[0]


async def trigger_many(
    database: Database,
    webhook_ids: Sequence[str],
    *,
    count: int,
    repo: RepoSnapshot = REPO,
    ping: bool = False,
) -> list[list[str]]:
    """Add so many events, in one transaction."""
    event = Trigger(
        domain=Domain.repo,
        scope="repo.content",
        action="update",
        repo=repo,
        targets=(repo.id,),
        payload=render("repo.content", "update", {"repo": {"name": repo.name}}),
    )
    new = [NewDelivery(webhook_id=w, state=DeliveryState.fresh, ping=ping) for w in webhook_ids]
    async with database.transaction() as conn:
        return [await add_deliveries(conn, await add_event(conn, event), new) for _ in range(count)]


async def deliveries_of(database: Database, webhook_id: str) -> list[dict[str, Any]]:
    """Return the states of the deliveries of a webhook, oldest first."""
    columns = ("state", "reason", "tries", "attempts", "status")
    async with database.read() as conn:
        rows = await conn.fetch_all(
            f"SELECT {', '.join(columns)} FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY id",
            webhook_id,
        )
    return [dict(zip(columns, row, strict=True)) for row in rows]


async def states_of(database: Database, webhook_id: str) -> list[tuple[str, str | None]]:
    return [(each["state"], each["reason"]) for each in await deliveries_of(database, webhook_id)]


async def attempts_of(database: Database, delivery_id: str) -> list[dict[str, Any]]:
    columns = ("number", "target", "job_id", "status", "reason", "detail", "response")
    async with database.read() as conn:
        rows = await conn.fetch_all(
            f"SELECT {', '.join(columns)} FROM webhook_attempts WHERE delivery_id = $1 "
            "ORDER BY number",
            delivery_id,
        )
    return [dict(zip(columns, row, strict=True)) for row in rows]


async def lane_of(database: Database, webhook_id: str) -> dict[str, Any]:
    columns = (
        "next_due_at", "last_trigger_at", "last_success_at", "failures", "failing_since",
        "degraded_since", "probes", "exhausted", "told", "day_count",
    )  # fmt: skip
    async with database.read() as conn:
        row = await conn.fetch_one(
            f"SELECT {', '.join(columns)} FROM webhook_lanes WHERE webhook_id = $1", webhook_id
        )
    assert row is not None
    return dict(zip(columns, row, strict=True))


async def events_of(database: Database, *kinds: type[Event]) -> list[str]:
    """Return the bodies of events that wait in the outbox, oldest first."""
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT kind, body FROM outbox ORDER BY id")
    names = {kind.kind for kind in kinds}
    return [row["body"] for row in rows if row["kind"] in names]
