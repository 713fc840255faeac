"""Webhooks switched off and on, suspended and deleted, and what becomes of their deliveries."""

from typing import Any

import httpx2

from hublet.core.clock import micros, wire
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.webhooks.records import DELIVERIES_CHANNEL
from patience import SOON_SECONDS
from people import Headers
from webhooks.webhook_calls import PATH, URL, create, show, update


async def test_a_webhook_is_disabled_and_enabled(client: httpx2.AsyncClient, ada: Headers) -> None:
    webhook = await create(client, ada)
    path = f"{PATH}/{webhook['id']}"

    # The clients send neither a body nor a content type.
    answers = [
        await client.post(f"{path}/{word}", headers=ada)
        for word in ("disable", "disable", "enable", "enable")
    ]

    assert [(answer.status_code, answer.json()["webhook"]) for answer in answers] == [
        (200, webhook | {"disabled": disabled}) for disabled in (True, True, False, False)
    ]
    assert await show(client, ada, webhook["id"]) == webhook


async def a_lane(database: Database, webhook_id: str, *, next_due_at: int | None) -> None:
    """Let a webhook be one whose deliveries fail."""
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO webhook_lanes (webhook_id, next_due_at, last_trigger_at, failures,
                failing_since, degraded_since, probes, exhausted, first_exhausted_at,
                last_exhausted_at, told, day_started_at, day_count)
            VALUES ($1, $2, 7, 8, 1, 2, 3, 11, 4, 5, 90, 6, 17)
            """,
            webhook_id, next_due_at,
        )  # fmt: skip


async def lane_of(database: Database, webhook_id: str) -> dict[str, Any]:
    async with database.read() as conn:
        row = await conn.fetch_one("SELECT * FROM webhook_lanes WHERE webhook_id = $1", webhook_id)
    assert row is not None
    return dict(row)


async def suspend(database: Database, webhook_id: str) -> None:
    async with database.transaction() as conn:
        await conn.execute(
            "UPDATE webhooks SET state = 'suspended-after-failure' WHERE id = $1", webhook_id
        )


async def test_a_suspended_webhook_says_so_until_it_is_enabled(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada)
    await suspend(database, webhook["id"])
    suspended = await show(client, ada, webhook["id"])
    updated = await update(client, ada, webhook["id"], domains=["repo"])

    enabled = await client.post(f"{PATH}/{webhook['id']}/enable", headers=ada)

    assert suspended == webhook | {"disabled": "suspended-after-failure"}
    assert updated["disabled"] == "suspended-after-failure"
    assert enabled.json()["webhook"]["disabled"] is False


async def test_enabling_forgets_how_the_target_did_and_wakes_the_deliverers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada)
    await a_lane(database, webhook["id"], next_due_at=micros() + 10**12)

    with database.subscribe(DELIVERIES_CHANNEL) as subscription:
        await client.post(f"{PATH}/{webhook['id']}/enable", headers=ada)
        assert await subscription.wait(timeout=SOON_SECONDS)

    lane = await lane_of(database, webhook["id"])
    assert lane.pop("next_due_at") <= micros()
    assert lane == {
        "webhook_id": webhook["id"],
        "last_trigger_at": 7,
        "last_success_at": None,
        "failures": 0,
        "failing_since": None,
        "degraded_since": None,
        "probes": 0,
        "exhausted": 0,
        "first_exhausted_at": None,
        "last_exhausted_at": None,
        "told": None,
        "day_started_at": 6,
        "day_count": 17,
    }


async def test_only_another_target_forgets_how_the_old_one_did(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada)
    await a_lane(database, webhook["id"], next_due_at=None)

    await update(client, ada, webhook["id"], url=URL, domains=["repo"])
    same = await lane_of(database, webhook["id"])
    await update(client, ada, webhook["id"], url=f"{URL}/2")
    other = await lane_of(database, webhook["id"])

    assert (same["failures"], same["degraded_since"]) == (8, 2)
    assert (other["failures"], other["degraded_since"], other["next_due_at"]) == (0, None, None)


async def test_the_last_trigger_is_shown(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada)
    await a_lane(database, webhook["id"], next_due_at=None)

    shown = await show(client, ada, webhook["id"])

    assert shown == webhook | {"lastTriggerAt": wire(7)}
    assert (await client.get(PATH, headers=ada)).json() == [shown]


async def some_deliveries(database: Database, webhook_id: str) -> dict[str, str]:
    """Add deliveries of a webhook in every state, and return their ids."""
    event_id, at = new_object_id(), micros()
    rows = {
        name: (new_object_id(), webhook_id, event_id, state, worker, at)
        for name, state, worker in [
            ("fresh", "fresh", None),
            ("pending", "pending", None),
            ("in flight", "pending", "a worker"),
            ("delivered", "delivered", None),
            ("failed", "failed", None),
        ]
    }
    async with database.transaction() as conn:
        for number, row in enumerate(rows.values()):
            await conn.execute(
                """
                INSERT INTO webhook_events (id, scope, action, repo_id, repo_type, repo_name,
                    repo_owner_id, repo_private, payload, created_at)
                VALUES ($1, 'repo', 'update', 'r', 'model', 'ada/engine', 'o', $3, '{}', $2)
                """,
                f"{event_id}{number}", at, False,
            )  # fmt: skip
            delivery_id, _, _, state, worker, _ = row
            await conn.execute(
                """
                INSERT INTO webhook_deliveries
                    (id, webhook_id, event_id, state, claimed_by, due_at, created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $6)
                """,
                delivery_id, webhook_id, f"{event_id}{number}", state, worker, at,
            )  # fmt: skip
    return {name: row[0] for name, row in rows.items()}


async def deliveries(database: Database, webhook_id: str) -> dict[str, tuple[Any, ...]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            """
            SELECT id, state, reason, finished_at IS NOT NULL AS is_finished
            FROM webhook_deliveries WHERE webhook_id = $1
            """,
            webhook_id,
        )
    return {row["id"]: (row["state"], row["reason"], bool(row["is_finished"])) for row in rows}


async def test_disabling_withdraws_what_nobody_has_begun_to_deliver(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook, other = await create(client, ada), await create(client, ada)
    ids = await some_deliveries(database, webhook["id"])
    untouched = await some_deliveries(database, other["id"])

    await client.post(f"{PATH}/{webhook['id']}/disable", headers=ada)

    assert await deliveries(database, webhook["id"]) == {
        ids["fresh"]: ("unsent", "disabled", True),
        ids["pending"]: ("unsent", "disabled", True),
        ids["in flight"]: ("pending", None, False),
        ids["delivered"]: ("delivered", None, False),
        ids["failed"]: ("failed", None, False),
    }
    assert (await deliveries(database, other["id"]))[untouched["fresh"]] == ("fresh", None, False)


async def test_a_deleted_webhook_leaves_nothing_behind(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook, other = await create(client, ada), await create(client, ada)
    await some_deliveries(database, webhook["id"])
    await a_lane(database, webhook["id"], next_due_at=None)
    path = f"{PATH}/{webhook['id']}"

    deleted = await client.delete(path, headers=ada)

    gone = {"error": f"There is no webhook {webhook['id']}."}
    assert (deleted.status_code, deleted.json()) == (200, {})
    for again in (await client.get(path, headers=ada), await client.delete(path, headers=ada)):
        assert (again.status_code, again.json()) == (404, gone)
    assert (await client.get(PATH, headers=ada)).json() == [other]
    async with database.read() as conn:
        for table in ("webhook_watched", "webhook_deliveries", "webhook_lanes"):
            left = await conn.fetch_value(
                f"SELECT count(*) FROM {table} WHERE webhook_id = $1", webhook["id"]
            )
            assert left == 0, table
