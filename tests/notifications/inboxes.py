"""Inboxes for tests: what comes into them, what they hold, and whether their counts are right."""

from collections.abc import Mapping
from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.notifications.inbox import service
from hublet.notifications.records import InboxItem, Involvement
from people import Headers

INBOX = "/api/notifications"
MARK = "/api/notifications/mark-as-read"

WATCHED, PARTICIPATING, MENTIONED = Involvement


def an_item(thread_id: str | None = None, **changes: Any) -> InboxItem:
    """Something that happened in a model, unless said otherwise."""
    values: dict[str, Any] = {"type": "model", "place_id": None, "event_id": None} | changes
    return InboxItem(thread_id=thread_id or new_object_id(), **values)


async def deliver(
    database: Database, item: InboxItem, recipients: Mapping[str, Involvement]
) -> None:
    async with database.transaction() as conn:
        await service.deliver(conn, item, recipients)


async def add_posts(database: Database, owner_id: str, number: int) -> list[str]:
    """Return the ids of so many new posts, called `Post 0` and so on."""
    ids = [new_object_id() for _ in range(number)]
    async with database.transaction() as conn:
        await conn.execute_many(
            """
            INSERT INTO threads (id, kind, title, owner_id, slug, created_at, updated_at)
            VALUES ($1, 'post', $2, $3, $1, 1, 1)
            """,
            [(each, f"Post {place}", owner_id) for place, each in enumerate(ids)],
        )
    return ids


async def rows_of(database: Database, user_id: str) -> list[dict[str, Any]]:
    """Return the items of an inbox, newest first."""
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT * FROM notifications WHERE user_id = $1 ORDER BY updated_at DESC", user_id
        )
    return [dict(row) | {"read": bool(row["read"])} for row in rows]


async def kept_counts(database: Database) -> dict[tuple[str, str, int], tuple[int, int]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT user_id, facet, involvement, total, unread FROM notification_counts"
        )
    return {(user, facet, level): (total, unread) for user, facet, level, total, unread in rows}


async def true_counts(database: Database) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Count by looking at every item."""
    counts: dict[tuple[str, str, int], tuple[int, int]] = {}
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT * FROM notifications")
    for row in rows:
        for facet in {row["type"], row["place_id"]} - {None}:
            key = (row["user_id"], facet, row["involvement"])
            total, unread = counts.get(key, (0, 0))
            counts[key] = (total + 1, unread + (not row["read"]))
    return counts


async def look(client: httpx2.AsyncClient, headers: Headers, **filters: Any) -> Any:
    response = await client.get(INBOX, headers=headers, params=filters)
    assert response.status_code == 200, response.text
    return response.json()


async def mark(
    client: httpx2.AsyncClient, headers: Headers, body: Any = None, **filters: Any
) -> int:
    """Mark what the body and the filters name; return how many changed."""
    response = await client.post(MARK, headers=headers, params=filters, json=body)
    assert response.status_code == 200, response.text
    count: int = response.json()["count"]
    return count


async def delete(
    client: httpx2.AsyncClient, headers: Headers, body: Any = None, **filters: Any
) -> int:
    response = await client.request("DELETE", INBOX, headers=headers, params=filters, json=body)
    assert response.status_code == 200, response.text
    count: int = response.json()["count"]
    return count
