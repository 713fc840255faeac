"""Mail queue: gathers events by user and thread, and queues their mails for a little later."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec

from hublet.core.database import Connection
from hublet.core.queue import NewTask, add_many
from hublet.notifications.mail import store
from hublet.notifications.mail.records import MailKind
from hublet.notifications.preferences.switches import PreferenceKey

SEND = "notifications.send-mails"

# Mails that one task sends, over one connection.
BATCH = 50


async def queue_thread_mail(
    conn: Connection,
    *,
    thread_id: str,
    event_id: str | None,
    recipients: Mapping[str, PreferenceKey],
) -> None:
    """Queue mails about an event in a thread, each with the preference that allows it.

    Several events within the delay become one mail, and none when the inbox item was read or
    deleted meanwhile: so the item has to be delivered before, in the same transaction. Without
    an event the mail is about the thread itself.
    """
    # One transaction at a time for the same thread, so that two never wait for each other.
    await conn.lock(f"mails of {thread_id}")
    for key in sorted(set(recipients.values())):
        opened = await store.gather(
            conn,
            kind=MailKind.thread,
            about=thread_id,
            event_id=event_id or thread_id,
            key=key,
            user_ids=[user_id for user_id, by in recipients.items() if by is key],
        )
        await schedule(conn, opened, delay=_delay(conn))


async def queue_message_mail(
    conn: Connection, *, message_id: str, user_id: str, key: PreferenceKey | None
) -> None:
    """Queue the mail of a message of the hub, at once; without a key it cannot be turned off."""
    await _queue_at_once(conn, MailKind.message, message_id, key=key, user_ids=[user_id])


async def queue_tags_mail(
    conn: Connection, *, repo_id: str, tags: Sequence[str], user_ids: Collection[str]
) -> None:
    """Queue mails about new tags; those of one repository within the delay become one mail."""
    await conn.lock(f"mails of {repo_id}")
    opened = await store.gather(
        conn,
        kind=MailKind.tags,
        about=repo_id,
        # No tag has a blank in its name.
        event_id=" ".join(tags),
        key=PreferenceKey.repo_release,
        user_ids=user_ids,
    )
    await schedule(conn, opened, delay=_delay(conn))


async def queue_digest_mail(conn: Connection, *, day: str, user_ids: Collection[str]) -> None:
    await _queue_at_once(
        conn, MailKind.digest, day, key=PreferenceKey.daily_papers_digest, user_ids=user_ids
    )


async def _queue_at_once(
    conn: Connection,
    kind: MailKind,
    about: str,
    *,
    key: PreferenceKey | None,
    user_ids: Collection[str],
) -> None:
    opened = await store.gather(
        conn, kind=kind, about=about, event_id=about, key=key, user_ids=user_ids
    )
    await schedule(conn, opened, delay=timedelta())


def _delay(conn: Connection) -> timedelta:
    return timedelta(seconds=conn.hub.settings.mail.delay_seconds)


async def schedule(conn: Connection, mail_ids: Sequence[str], *, delay: timedelta) -> None:
    """Queue the tasks that send these mails after the delay."""
    await add_many(
        conn,
        [NewTask(kind=SEND, body=_body(batch), delay=delay) for batch in _batches(mail_ids)],
    )


def _body(mail_ids: Sequence[str]) -> str:
    return msgspec.json.encode({"mail_ids": mail_ids}).decode()


def _batches(mail_ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (mail_ids[start : start + BATCH] for start in range(0, len(mail_ids), BATCH))
