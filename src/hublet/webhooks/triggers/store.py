"""SQL of trigger events and of the deliveries they cause."""

import json
from collections.abc import Iterable, Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.ids import new_object_id
from hublet.core.tracing import current_traceparent
from hublet.events import RepoSnapshot
from hublet.webhooks.records import DELIVERIES_CHANNEL, Domain
from hublet.webhooks.triggers.records import Candidate, NewDelivery, Trigger, TriggeredEvent

_WATCHING = """
    SELECT w.id AS webhook_id, w.owner_id, w.state, w.private_owners, t.target
    FROM webhook_watched t JOIN webhooks w ON w.id = t.webhook_id
"""
_WATCHES = {Domain.repo: "w.watches_repo", Domain.discussion: "w.watches_discussion"}


async def list_watching(
    conn: Reader, domain: Domain, targets: Iterable[str], *, limit: int
) -> list[Candidate]:
    """Return the webhooks that watch these targets, once for each target."""
    rows = await conn.fetch_all(
        f"{_WATCHING} WHERE t.target IN each($1) AND {_WATCHES[domain]} LIMIT $2",
        json.dumps(list(targets)), limit,
    )  # fmt: skip
    return [Candidate(*row) for row in rows]


async def list_watching_after(
    conn: Reader, domain: Domain, target: str, *, after: str, before: int, limit: int
) -> list[Candidate]:
    """Return the next webhooks, by id, that watched this target before a time."""
    rows = await conn.fetch_all(
        f"""
        {_WATCHING}
        WHERE t.target = $1 AND t.webhook_id > $2 AND w.created_at <= $3 AND {_WATCHES[domain]}
        ORDER BY t.webhook_id LIMIT $4
        """,
        target, after, before, limit,
    )  # fmt: skip
    return [Candidate(*row) for row in rows]


async def add_event(conn: Connection, trigger: Trigger) -> TriggeredEvent:
    event = TriggeredEvent(id=new_object_id(), repo=trigger.repo, created_at=micros())
    repo = trigger.repo
    await conn.execute(
        """
        INSERT INTO webhook_events
            (id, scope, action, repo_id, repo_type, repo_name, repo_owner_id, repo_private,
             resource_group_id, payload, created_at, trace)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
        """,
        event.id, trigger.scope, trigger.action, repo.id, repo.type, repo.name, repo.owner_id,
        repo.private, repo.resource_group_id, trigger.payload.decode(), event.created_at,
        current_traceparent(),
    )  # fmt: skip
    return event


async def find_event(conn: Reader, event_id: str) -> TriggeredEvent | None:
    row = await conn.fetch_one(
        """
        SELECT repo_id, repo_type, repo_name, repo_owner_id, repo_private, resource_group_id,
               created_at
        FROM webhook_events WHERE id = $1
        """,
        event_id,
    )
    if row is None:
        return None
    return TriggeredEvent(id=event_id, repo=repo_snapshot(row), created_at=row["created_at"])


def repo_snapshot(row: Row) -> RepoSnapshot:
    """Return the repository of an event as it was then."""
    return RepoSnapshot(
        id=row["repo_id"],
        type=row["repo_type"],
        name=row["repo_name"],
        owner_id=row["repo_owner_id"],
        private=bool(row["repo_private"]),
        resource_group_id=row["resource_group_id"],
    )


async def add_deliveries(
    conn: Connection, event: TriggeredEvent, deliveries: Sequence[NewDelivery]
) -> list[str]:
    """Add one delivery for each webhook, unless it has one of this event; return their ids."""
    now = micros()
    ids = [new_object_id() for _ in deliveries]
    await conn.execute_many(
        """
        INSERT INTO webhook_deliveries
            (id, webhook_id, event_id, state, reason, ping, due_at, created_at, finished_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (event_id, webhook_id) DO NOTHING
        """,
        [
            (
                delivery_id, each.webhook_id, event.id, each.state, each.reason, each.ping, now,
                event.created_at, None if each.reason is None else now,
            )
            for delivery_id, each in zip(ids, deliveries, strict=True)
        ],
    )  # fmt: skip
    conn.wake(DELIVERIES_CHANNEL)
    return ids


async def resolve_missing(conn: Connection, target: str, *, repo_id: str) -> None:
    """Let webhooks that watched a deleted repository of this name watch the new one."""
    await conn.execute("UPDATE webhook_watched SET target = $2 WHERE target = $1", target, repo_id)


async def mark_missing(conn: Connection, repo: RepoSnapshot, target: str) -> None:
    """Let webhooks that watched a deleted repository watch its name, and show its last name.

    The last name of a private one is shown to its owner's webhooks only.
    """
    await conn.execute(
        """
        UPDATE webhook_watched SET target = $2, name = CASE
            WHEN $4 OR webhook_id IN (SELECT id FROM webhooks WHERE owner_id = $5)
            THEN $3 ELSE name END
        WHERE target = $1
        """,
        repo.id, target, repo.name, not repo.private, repo.owner_id,
    )  # fmt: skip
