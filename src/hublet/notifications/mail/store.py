"""SQL of queued mails, and of their recipients."""

from collections.abc import Collection, Sequence

import msgspec

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.ids import new_object_id
from hublet.notifications.mail.records import MailKind, MailRecipient, QueuedMail
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.records import MessageText


def _array(values: Collection[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


async def gather(
    conn: Connection,
    *,
    kind: MailKind,
    about: str,
    event_id: str,
    key: PreferenceKey | None,
    user_ids: Collection[str],
) -> list[str]:
    """Add an event to the open mails of these users; return the ids of those it opened.

    When the inbox item leads to this very event, everything before it was seen: it is left out.
    """
    batch = new_object_id()
    rows = await conn.fetch_all(
        """
        INSERT INTO mails (id, user_id, kind, about, key, events, in_inbox, created_at)
        SELECT CAST($1 AS TEXT) || '.' || u.id, u.id, $2, $3, $4, $5,
            EXISTS (SELECT 1 FROM notifications n
                    WHERE n.user_id = u.id AND n.thread_id = $3 AND NOT n.read),
            $6
        FROM users u WHERE u.id IN each($7) ORDER BY u.id
        ON CONFLICT (user_id, about) WHERE NOT closed DO UPDATE SET
            key = excluded.key,
            in_inbox = excluded.in_inbox,
            events = CASE
                WHEN EXISTS (SELECT 1 FROM notifications n
                             WHERE n.user_id = mails.user_id AND n.thread_id = $3
                               AND n.event_id = excluded.events)
                THEN excluded.events ELSE mails.events || ' ' || excluded.events END
        RETURNING id
        """,
        batch, kind, about, key, event_id, micros(), _array(user_ids),
    )  # fmt: skip
    return [row["id"] for row in rows if row["id"].startswith(batch)]


async def close(conn: Connection, mail_ids: Sequence[str]) -> list[QueuedMail]:
    """Close the mails that are still to be sent, and return them; later events open others."""
    rows = await conn.fetch_all(
        """
        UPDATE mails SET closed = TRUE WHERE id IN each($1)
        RETURNING id, user_id, kind, about, key, events, in_inbox, created_at
        """,
        _array(mail_ids),
    )
    return sorted(map(_mail_record, rows), key=lambda mail: mail.id)


async def remove(conn: Connection, mail_ids: Sequence[str]) -> None:
    await conn.execute("DELETE FROM mails WHERE id IN each($1)", _array(mail_ids))


async def find_recipients(conn: Reader, user_ids: Collection[str]) -> dict[str, MailRecipient]:
    """Return those of these users who have a verified primary address."""
    rows = await conn.fetch_all(
        """
        SELECT u.id, u.name, u.fullname, u.disabled_at, e.address
        FROM users u JOIN emails e ON e.user_id = u.id
        WHERE u.id IN each($1) AND u.type = 'user' AND e.is_primary
          AND e.verified_at IS NOT NULL
        """,
        _array(user_ids),
    )
    return {
        row["id"]: MailRecipient(
            user_id=row["id"],
            name=row["name"],
            fullname=row["fullname"],
            address=row["address"],
            disabled=row["disabled_at"] is not None,
        )
        for row in rows
    }


async def list_watchers(
    conn: Reader, *, repo_id: str, owner_id: str, after: str, limit: int
) -> list[str]:
    """Return who watches a repository or its owner and has not muted it, in the order of ids."""
    rows = await conn.fetch_all(
        """
        SELECT DISTINCT w.user_id FROM watches w JOIN users u ON u.id = w.user_id
        WHERE w.target_id IN ($1, $2) AND w.user_id > $3
          AND u.type = 'user' AND u.disabled_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM repo_mutes m
                          WHERE m.repo_id = $1 AND m.user_id = w.user_id)
        ORDER BY w.user_id LIMIT $4
        """,
        repo_id, owner_id, after, limit,
    )  # fmt: skip
    return [row["user_id"] for row in rows]


async def is_unread(conn: Reader, thread_id: str, *, user_id: str) -> bool:
    """Tell whether the thread is unread in the user's inbox."""
    found = await conn.fetch_value(
        "SELECT 1 FROM notifications WHERE user_id = $1 AND thread_id = $2 AND NOT read",
        user_id, thread_id,
    )  # fmt: skip
    return found is not None


async def find_message(conn: Reader, message_id: str, *, user_id: str) -> MessageText | None:
    row = await conn.fetch_one(
        "SELECT kind, title, body FROM messages WHERE id = $1 AND user_id = $2", message_id, user_id
    )
    return MessageText(kind=row["kind"], title=row["title"], body=row["body"]) if row else None


async def name_of(conn: Reader, user_id: str) -> str:
    name: str = await conn.fetch_value("SELECT name FROM users WHERE id = $1", user_id)
    return name


async def count_verification(conn: Connection, *, user_id: str, since: int, most: int) -> bool:
    """Count one more mail to an address that is not verified; False when that is too many."""
    await conn.execute(
        "DELETE FROM verification_mails WHERE user_id = $1 AND sent_at < $2", user_id, since
    )
    return await conn.execute(
        """
        INSERT INTO verification_mails (id, user_id, sent_at) SELECT $1, $2, $3
        WHERE (SELECT count(*) FROM verification_mails WHERE user_id = $2) < $4
        """,
        new_object_id(), user_id, micros(), most,
    ) == 1  # fmt: skip


def _mail_record(row: Row) -> QueuedMail:
    return QueuedMail(
        id=row["id"],
        user_id=row["user_id"],
        kind=MailKind(row["kind"]),
        about=row["about"],
        key=PreferenceKey(row["key"]) if row["key"] else None,
        # A task that ran twice added the same event twice.
        events=tuple(dict.fromkeys(row["events"].split())),
        in_inbox=bool(row["in_inbox"]),
        created_at=from_micros(row["created_at"]),
    )
