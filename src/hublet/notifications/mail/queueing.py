"""How mails come into the queue: gathered by user and thread, sent a little later."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec

from hublet.core.database import Connection
from hublet.core.queue import NewTask, add_many
from hublet.notifications.mail import store
from hublet.notifications.mail.records import Kind
from hublet.notifications.preferences.keys import Key

SEND = "notifications.send-mails"

# Mails that one task sends, over one connection.
BATCH = 50


async def mail_of_thread(
    conn: Connection, *, thread_id: str, event_id: str | None, recipients: Mapping[str, Key]
) -> None:
    """Have users told of what happened in a thread, each by the switch that lets it through.

    Several events within the delay become one mail, and none when the inbox item was read or
    deleted meanwhile: so the item has to be delivered before, in the same transaction. Without
    an event the mail tells of the thread itself.
    """
    # Whoever gathers for the same thread waits, so that two of them never wait for each other.
    await conn.lock(f"mails of {thread_id}")
    for key in sorted(set(recipients.values())):
        opened = await store.gather(
            conn,
            kind=Kind.thread,
            about=thread_id,
            event_id=event_id or thread_id,
            key=key,
            user_ids=[user_id for user_id, by in recipients.items() if by is key],
        )
        await plan(conn, opened, delay=_delay(conn))


async def mail_of_message(
    conn: Connection, *, message_id: str, user_id: str, key: Key | None
) -> None:
    """Have a user told of a message of the hub, at once; without a key it cannot be turned off."""
    await _mail_at_once(conn, Kind.message, message_id, key=key, user_ids=[user_id])


async def mail_of_tags(
    conn: Connection, *, repo_id: str, tags: Sequence[str], user_ids: Collection[str]
) -> None:
    """Have users told of new tags; those of one repository within the delay become one mail."""
    await conn.lock(f"mails of {repo_id}")
    opened = await store.gather(
        conn,
        kind=Kind.tags,
        about=repo_id,
        # No tag has a blank in its name.
        event_id=" ".join(tags),
        key=Key.repo_release,
        user_ids=user_ids,
    )
    await plan(conn, opened, delay=_delay(conn))


async def mail_of_digest(conn: Connection, *, day: str, user_ids: Collection[str]) -> None:
    await _mail_at_once(conn, Kind.digest, day, key=Key.daily_papers_digest, user_ids=user_ids)


async def _mail_at_once(
    conn: Connection, kind: Kind, about: str, *, key: Key | None, user_ids: Collection[str]
) -> None:
    opened = await store.gather(
        conn, kind=kind, about=about, event_id=about, key=key, user_ids=user_ids
    )
    await plan(conn, opened, delay=timedelta())


def _delay(conn: Connection) -> timedelta:
    return timedelta(seconds=conn.hub.settings.mail.delay_seconds)


async def plan(conn: Connection, mail_ids: Sequence[str], *, delay: timedelta) -> None:
    """Have these mails sent, the delay from now."""
    await add_many(
        conn,
        [NewTask(kind=SEND, body=_body(batch), delay=delay) for batch in _batches(mail_ids)],
    )


def _body(mail_ids: Sequence[str]) -> str:
    return msgspec.json.encode({"mail_ids": mail_ids}).decode()


def _batches(mail_ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (mail_ids[start : start + BATCH] for start in range(0, len(mail_ids), BATCH))
