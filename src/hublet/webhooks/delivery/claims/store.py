"""SQL of deliveries that are taken, held and given back."""

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

from hublet.core.clock import micros, offset
from hublet.core.database import Connection, Reader, Row
from hublet.events import RepoSnapshot
from hublet.webhooks.delivery.records import Delivery, GivenUp, Happening, Unsent

LEASE = 60_000_000

_TAKEN = "id, webhook_id, event_id, tries, attempts, ping, due_at"
_WAITING = "state = 'pending' AND claimed_by IS NULL"


def _lease_clock() -> int:
    """A lease ends when a worker was silent for so long; moving the clock makes nobody silent."""
    return micros() - offset() // timedelta(microseconds=1)


async def is_fresh_waiting(conn: Reader) -> bool:
    found = await conn.fetch_value("SELECT 1 FROM webhook_deliveries WHERE state = 'fresh' LIMIT 1")
    return found is not None


async def take_fresh(conn: Connection, *, worker: str, limit: int) -> list[Row]:
    """Hold the oldest deliveries that nobody has looked at."""
    rows = await conn.claim(
        f"""
        WITH oldest AS (
            SELECT id FROM webhook_deliveries WHERE state = 'fresh' ORDER BY id LIMIT $1 /* claim */
        )
        UPDATE webhook_deliveries SET state = 'pending', claimed_by = $2, claimed_until = $3
        WHERE id IN (SELECT id FROM oldest) RETURNING {_TAKEN}
        """,
        limit, worker, _lease_clock() + LEASE,
    )  # fmt: skip
    return sorted(rows, key=lambda row: str(row["id"]))


async def take_due(conn: Connection, webhook_id: str, *, worker: str, limit: int) -> list[Row]:
    """Hold what one webhook has had due for longest."""
    rows = await conn.claim(
        f"""
        WITH due AS (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = $1 AND {_WAITING} AND due_at <= $2
            ORDER BY due_at, id LIMIT $3 /* claim */
        )
        UPDATE webhook_deliveries SET claimed_by = $4, claimed_until = $5
        WHERE id IN (SELECT id FROM due) RETURNING {_TAKEN}
        """,
        webhook_id, micros(), limit, worker, _lease_clock() + LEASE,
    )  # fmt: skip
    return sorted(rows, key=lambda row: (row["due_at"], row["id"]))


async def earliest_due(conn: Reader, webhook_id: str) -> int | None:
    due: int | None = await conn.fetch_value(
        f"SELECT min(due_at) FROM webhook_deliveries WHERE webhook_id = $1 AND {_WAITING}",
        webhook_id,
    )
    return due


async def set_aside(conn: Connection, delivery_ids: Sequence[str]) -> None:
    """Leave deliveries for later that were just taken."""
    await conn.execute(
        """
        UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until = NULL WHERE id IN each($1)
        """,
        json.dumps(delivery_ids),
    )


async def leave_unsent(conn: Connection, delivery_ids: Sequence[str], reason: Unsent) -> None:
    await conn.execute(
        """
        UPDATE webhook_deliveries
        SET state = 'unsent', reason = $2, finished_at = $3, claimed_by = NULL, claimed_until = NULL
        WHERE id IN each($1)
        """,
        json.dumps(delivery_ids), reason, micros(),
    )  # fmt: skip


async def leave_waiting_unsent(conn: Connection, webhook_id: str, reason: Unsent) -> None:
    """Do not send what waits for a webhook; what is held is seen to by its holder."""
    await conn.execute(
        f"""
        UPDATE webhook_deliveries SET state = 'unsent', reason = $2, finished_at = $3
        WHERE webhook_id = $1 AND {_WAITING}
        """,
        webhook_id, reason, micros(),
    )  # fmt: skip


async def give_up_waiting(conn: Connection, webhook_id: str, *, since: int, limit: int) -> int:
    """Give up what a degraded target has kept waiting since then; return how many.

    What was sent anew later is old only by its creation, and is tried at least once.
    """
    return await conn.execute(
        f"""
        UPDATE webhook_deliveries SET state = 'failed', reason = $4, finished_at = $5
        WHERE id IN (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = $1 AND {_WAITING} AND created_at < $2 AND (tries > 0 OR due_at < $2)
            ORDER BY id LIMIT $3
        ) AND {_WAITING}
        """,
        webhook_id, since, limit, GivenUp.exhausted, micros(),
    )  # fmt: skip


async def list_happenings(conn: Reader, event_ids: Iterable[str]) -> dict[str, Happening]:
    rows = await conn.fetch_all(
        """
        SELECT id, payload, repo_id, repo_type, repo_name, repo_owner_id, repo_private,
               resource_group_id
        FROM webhook_events WHERE id IN each($1)
        """,
        json.dumps(list(event_ids)),
    )
    return {row["id"]: _happening(row) for row in rows}


async def extend(conn: Connection, delivery_ids: Collection[str], *, worker: str) -> None:
    """Give a sign of life for what this worker holds."""
    await conn.execute(
        """
        UPDATE webhook_deliveries SET claimed_until = $1 WHERE id IN each($2) AND claimed_by = $3
        """,
        _lease_clock() + LEASE, json.dumps(list(delivery_ids)), worker,
    )  # fmt: skip


async def release_all(conn: Connection, *, worker: str) -> list[str]:
    """Let go of everything that a stopping or dead worker holds; return the webhook of each."""
    rows = await conn.fetch_all(
        """
        UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until = NULL
        WHERE claimed_by = $1 RETURNING webhook_id
        """,
        worker,
    )
    return [row["webhook_id"] for row in rows]


async def has_expired(conn: Reader) -> bool:
    """Tell whether a holder gave no sign of life for a whole lease."""
    found = await conn.fetch_value(
        """
        SELECT 1 FROM webhook_deliveries
        WHERE claimed_by IS NOT NULL AND claimed_until < $1 LIMIT 1
        """,
        _lease_clock(),
    )
    return found is not None


async def release_expired(conn: Connection, *, besides: Collection[str]) -> list[str]:
    """Let go of such deliveries, besides these; return the webhook of each."""
    rows = await conn.fetch_all(
        """
        UPDATE webhook_deliveries SET claimed_by = NULL, claimed_until = NULL
        WHERE claimed_by IS NOT NULL AND claimed_until < $1 AND id NOT IN each($2)
        RETURNING webhook_id
        """,
        _lease_clock(), json.dumps(list(besides)),
    )  # fmt: skip
    return [row["webhook_id"] for row in rows]


def delivery(row: Row, happening: Happening) -> Delivery:
    return Delivery(
        id=row["id"],
        webhook_id=row["webhook_id"],
        happening=happening,
        tries=row["tries"],
        attempts=row["attempts"],
        ping=bool(row["ping"]),
        due_at=row["due_at"],
    )


def _happening(row: Row) -> Happening:
    return Happening(
        id=row["id"],
        payload=row["payload"].encode(),
        repo=RepoSnapshot(
            id=row["repo_id"],
            type=row["repo_type"],
            name=row["repo_name"],
            owner_id=row["repo_owner_id"],
            private=bool(row["repo_private"]),
            resource_group_id=row["resource_group_id"],
        ),
    )
