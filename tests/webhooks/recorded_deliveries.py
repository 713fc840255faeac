"""Deliveries as the engine leaves them, put straight into the tables."""

from typing import Any

from huggingface_hub import WebhookPayload

from hublet.core.clock import micros
from hublet.core.database import Connection, Database
from hublet.core.ids import new_object_id
from hublet.webhooks.records import ATTEMPTS_CHANNEL

# What it is made of depends on what is installed, so that its type says nothing.
_PublicPayload: Any = WebhookPayload

SECOND = 1_000_000
DAY = 86_400 * SECOND

_ENDS = {"delivered", "failed", "unsent"}


def id_at(moment: int) -> str:
    """Return an id as it would have been made then."""
    return f"{moment // SECOND:08x}{new_object_id()[8:]}"


async def _insert(conn: Connection, table: str, values: dict[str, Any]) -> None:
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await conn.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})",
        *values.values(),
    )


async def an_event(database: Database, *, at: int | None = None, **changes: Any) -> str:
    """Return the id of what happened to ada/engine; `repo_name` and the like change it."""
    moment = micros() if at is None else at
    values: dict[str, Any] = {
        "id": id_at(moment),
        "scope": "repo.content",
        "action": "update",
        "repo_id": "a" * 24,
        "repo_type": "model",
        "repo_name": "ada/engine",
        "repo_owner_id": "b" * 24,
        "repo_private": False,
        "payload": '{"event":{"action":"update","scope":"repo.content"}}',
        "created_at": moment,
    }
    async with database.transaction() as conn:
        await _insert(conn, "webhook_events", values | changes)
    event_id: str = (values | changes)["id"]
    return event_id


async def a_delivery(
    database: Database,
    webhook_id: str,
    *,
    at: int | None = None,
    event: dict[str, Any] | None = None,
    **changes: Any,
) -> str:
    """Return the id of a delivery, one that arrived unless `state` says otherwise."""
    moment = micros() if at is None else at
    event_id = await an_event(database, at=moment, **(event or {}))
    state = changes.get("state", "delivered")
    values: dict[str, Any] = {
        "id": id_at(moment),
        "webhook_id": webhook_id,
        "event_id": event_id,
        "state": state,
        "attempts": 0,
        "due_at": moment,
        "created_at": moment,
        "finished_at": moment if state in _ENDS else None,
    }
    async with database.transaction() as conn:
        await _insert(conn, "webhook_deliveries", values | changes)
    delivery_id: str = (values | changes)["id"]
    return delivery_id


async def an_attempt(database: Database, delivery_id: str, **changes: Any) -> None:
    """Add an attempt and let the delivery stand as it left it; `state` says how it stands."""
    state = changes.pop("state", "delivered")
    now = micros()
    values: dict[str, Any] = {
        "id": new_object_id(),
        "delivery_id": delivery_id,
        "number": 1,
        "started_at": now,
        "target": "https://example.com/hook",
        "status": 200,
        "total_micros": 1500,
        "response": b"",
    }
    attempt = values | changes
    async with database.transaction() as conn:
        await _insert(conn, "webhook_attempts", attempt)
        await conn.execute(
            """
            UPDATE webhook_deliveries SET state = $2, attempts = $3, status = $4, reason = $5,
                claimed_by = NULL, finished_at = $6
            WHERE id = $1
            """,
            delivery_id, state, attempt["number"], attempt["status"], attempt.get("reason"),
            now if state in _ENDS else None,
        )  # fmt: skip
        conn.wake(ATTEMPTS_CHANNEL)


async def delivery_row(database: Database, delivery_id: str) -> dict[str, Any]:
    """Return what the table says about where a delivery stands."""
    columns = ("state", "reason", "tries", "attempts", "claimed_by", "finished_at")
    async with database.read() as conn:
        row = await conn.fetch_one(
            f"SELECT {', '.join(columns)} FROM webhook_deliveries WHERE id = $1",
            delivery_id,
        )
    assert row is not None
    return dict(zip(columns, row, strict=True))


def as_the_public_client_reads(payload: Any) -> Any:
    """Return a payload as the public client's receiver hands it on; fail when it refuses it."""
    return _PublicPayload.model_validate(payload)
