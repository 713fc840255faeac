"""SQL that changes inboxes.

An inbox is locked before it is changed, and only then read. The counts are kept in the same
transaction: items are subtracted from the counts, changed, and added again.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.notifications.inbox.conditions import Condition
from hublet.notifications.records import INBOXES_CHANNEL, InboxChange, InboxItem, Involvement

# A user, and a type or the id of a place.
Facet = tuple[str, str]


class CountChange(Enum):
    """How the counts change, of all items and of the unread ones: two terms of SQL."""

    removed = ("-count(*)", "-sum(unread)")
    added = ("count(*)", "sum(unread)")
    marked_read = ("0", "-count(*)")
    marked_unread = ("0", "count(*)")


async def lock(conn: Connection, user_ids: Iterable[str], *, arrival: bool = False) -> None:
    """Lock these inboxes until the transaction ends, and wake their streams at its end.

    In the order of ids, so that two transactions never wait for each other. With an arrival
    the inbox gets a new newest time, later than all that was ever committed in it.
    """
    conn.wake(INBOXES_CHANNEL)
    await conn.execute(
        """
        INSERT INTO inboxes (user_id, version, last_at)
        SELECT id, 1, $2 FROM users WHERE id IN each($1) ORDER BY id
        ON CONFLICT (user_id) DO UPDATE SET
            version = inboxes.version + 1,
            last_at = CASE WHEN excluded.last_at = 0 THEN inboxes.last_at
                WHEN excluded.last_at > inboxes.last_at THEN excluded.last_at
                ELSE inboxes.last_at + 1 END
        """,
        json.dumps(sorted(user_ids)), micros() if arrival else 0,
    )  # fmt: skip


async def last_at(conn: Reader, user_id: str) -> int:
    """Return the time of the newest item that ever came."""
    found: int | None = await conn.fetch_value(
        "SELECT last_at FROM inboxes WHERE user_id = $1", user_id
    )
    return found or 0


async def put_item(
    conn: Connection, item: InboxItem, recipients: Mapping[str, Involvement]
) -> None:
    """Add an item to inboxes that are locked, or mark it as unread again."""
    await conn.execute(
        """
        INSERT INTO notifications
            (user_id, thread_id, type, place_id, involvement, read, updated_at, event_id,
             last_event_id)
        SELECT user_id, $2, $3, $4,
            CASE WHEN user_id IN each($6) THEN 2 WHEN user_id IN each($7) THEN 1 ELSE 0 END,
            FALSE, last_at, $5, $5
        FROM inboxes WHERE user_id IN each($1)
        ON CONFLICT (user_id, thread_id) DO UPDATE SET
            involvement = CASE WHEN excluded.involvement > notifications.involvement
                THEN excluded.involvement ELSE notifications.involvement END,
            read = FALSE,
            updated_at = excluded.updated_at,
            event_id = CASE WHEN notifications.read
                THEN excluded.event_id ELSE notifications.event_id END,
            last_event_id = excluded.last_event_id
        """,
        json.dumps(list(recipients)), item.thread_id, item.type, item.place_id, item.event_id,
        _involved_users(recipients, Involvement.mentioned), _involved_users(recipients, Involvement.participating),
    )  # fmt: skip


def _involved_users(recipients: Mapping[str, Involvement], involvement: Involvement) -> str:
    return json.dumps([user for user, level in recipients.items() if level is involvement])


async def is_any(conn: Reader, chosen: Condition) -> bool:
    found = await conn.fetch_value(
        f"SELECT 1 FROM notifications WHERE {chosen.sql} LIMIT 1", *chosen.values
    )
    return found is not None


async def raise_involvement(conn: Connection, chosen: Condition, involvement: Involvement) -> int:
    place = len(chosen.values) + 1
    return await conn.execute(
        f"UPDATE notifications SET involvement = ${place} WHERE {chosen.sql}",
        *chosen.values, involvement,
    )  # fmt: skip


async def set_read(conn: Connection, chosen: Condition, *, read: bool) -> int:
    """Mark items whose state differs; one that becomes unread leads to the last event."""
    seen = "" if read else ", event_id = last_event_id"
    place = len(chosen.values) + 1
    return await conn.execute(
        f"UPDATE notifications SET read = ${place}{seen} WHERE {chosen.sql}", *chosen.values, read
    )


async def add_change(conn: Connection, change: InboxChange) -> None:
    await conn.execute(
        """
        INSERT INTO inbox_changes (id, user_id, read, last_at, created_at)
        VALUES ($1, $2, $3, $4, $5)
        """,
        change.id, change.user_id, change.read, change.last_at, micros(),
    )  # fmt: skip


async def note_changed_items(
    conn: Connection, change_id: str, chosen: Condition, *, muted: bool
) -> int:
    """Note items before a change marks them; with `muted`, also which threads it will mute."""
    mutes = (
        """
        EXISTS (SELECT 1 FROM threads t WHERE t.id = notifications.thread_id)
        AND NOT EXISTS (
            SELECT 1 FROM thread_mutes m
            WHERE m.thread_id = notifications.thread_id AND m.user_id = notifications.user_id
        )
        """
        if muted
        else "FALSE"
    )
    place = len(chosen.values) + 1
    return await conn.execute(
        f"""
        INSERT INTO inbox_change_items (change_id, thread_id, event_id, marked, muted)
        SELECT ${place}, thread_id, event_id, {"NOT read" if muted else "TRUE"}, {mutes}
        FROM notifications WHERE {chosen.sql}
        """,
        *chosen.values, change_id,
    )  # fmt: skip


async def find_change(
    conn: Reader, change_id: str, *, user_id: str, since: int
) -> InboxChange | None:
    row = await conn.fetch_one(
        """
        SELECT c.id, c.user_id, c.read, c.last_at,
            (SELECT count(*) FROM inbox_change_items i WHERE i.change_id = c.id AND i.marked)
                AS marked,
            (SELECT count(*) FROM inbox_change_items i WHERE i.change_id = c.id AND i.muted)
                AS muted
        FROM inbox_changes c WHERE c.id = $1 AND c.user_id = $2 AND c.created_at >= $3
        """,
        change_id, user_id, since,
    )  # fmt: skip
    if row is None:
        return None
    return InboxChange(
        id=row["id"],
        user_id=row["user_id"],
        read=bool(row["read"]),
        last_at=row["last_at"],
        marked=row["marked"],
        muted=row["muted"],
    )


async def list_muted_by_change(conn: Reader, change_id: str) -> list[str]:
    rows = await conn.fetch_all(
        "SELECT thread_id FROM inbox_change_items WHERE change_id = $1 AND muted ORDER BY thread_id",
        change_id,
    )
    return [row["thread_id"] for row in rows]


async def restore_items(conn: Connection, chosen: Condition, change: InboxChange) -> int:
    """Give items back the state, and the event that they lead to, from before a change."""
    place = len(chosen.values) + 1
    return await conn.execute(
        f"""
        UPDATE notifications SET read = ${place}, event_id = (
            SELECT i.event_id FROM inbox_change_items i
            WHERE i.change_id = ${place + 1} AND i.thread_id = notifications.thread_id
        )
        WHERE {chosen.sql}
        """,
        *chosen.values, not change.read, change.id,
    )  # fmt: skip


async def remove_change(conn: Connection, change_id: str) -> None:
    await conn.execute("DELETE FROM inbox_changes WHERE id = $1", change_id)


async def remove_old_changes(conn: Connection, user_id: str, *, before: int) -> None:
    await conn.execute(
        "DELETE FROM inbox_changes WHERE user_id = $1 AND created_at < $2", user_id, before
    )


async def remove(conn: Connection, chosen: Condition) -> int:
    return await conn.execute(f"DELETE FROM notifications WHERE {chosen.sql}", *chosen.values)


async def change_counts(conn: Connection, chosen: Condition, change: CountChange) -> set[Facet]:
    """Subtract items from the counts or add them; return which counts are empty now."""
    total, unread = change.value
    rows = await conn.fetch_all(
        f"""
        WITH chosen AS (
            SELECT user_id, type, place_id, involvement, CASE WHEN read THEN 0 ELSE 1 END AS unread
            FROM notifications WHERE {chosen.sql}
        )
        INSERT INTO notification_counts (user_id, facet, involvement, total, unread)
        SELECT user_id, facet, involvement, {total}, {unread} FROM (
            SELECT user_id, type AS facet, involvement, unread FROM chosen
            UNION ALL
            SELECT user_id, place_id AS facet, involvement, unread FROM chosen
            WHERE place_id IS NOT NULL
        ) AS facets
        WHERE TRUE GROUP BY user_id, facet, involvement
        ON CONFLICT (user_id, facet, involvement) DO UPDATE SET
            total = notification_counts.total + excluded.total,
            unread = notification_counts.unread + excluded.unread
        RETURNING user_id, facet, total
        """,
        *chosen.values,
    )
    return {(row["user_id"], row["facet"]) for row in rows if not row["total"]}


async def remove_empty_counts(conn: Connection, emptied: Collection[Facet]) -> None:
    """Remove those of these counts that are still empty."""
    if emptied:
        users, facets = zip(*emptied, strict=True)
        await conn.execute(
            """
            DELETE FROM notification_counts
            WHERE user_id IN each($1) AND facet IN each($2) AND total = 0
            """,
            json.dumps(sorted(set(users))), json.dumps(sorted(set(facets))),
        )  # fmt: skip


async def list_users_with_thread(
    conn: Reader, thread_id: str, *, after: str, limit: int
) -> list[str]:
    rows = await conn.fetch_all(
        """
        SELECT user_id FROM notifications WHERE thread_id = $1 AND user_id > $2
        ORDER BY user_id LIMIT $3
        """,
        thread_id, after, limit,
    )  # fmt: skip
    return [row["user_id"] for row in rows]


async def list_users_with_place(
    conn: Reader, place_id: str, *, after: str, limit: int
) -> list[str]:
    rows = await conn.fetch_all(
        """
        SELECT DISTINCT user_id FROM notification_counts
        WHERE facet = $1 AND user_id > $2 ORDER BY user_id LIMIT $3
        """,
        place_id, after, limit,
    )  # fmt: skip
    return [row["user_id"] for row in rows]


async def versions_of(conn: Reader, user_ids: Collection[str]) -> dict[str, int]:
    """Return by user the version of the inbox, which every change raises; no inbox, no version."""
    rows = await conn.fetch_all(
        "SELECT user_id, version FROM inboxes WHERE user_id IN each($1)",
        json.dumps(list(user_ids)),
    )
    return {row["user_id"]: row["version"] for row in rows}
