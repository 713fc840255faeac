"""Service of messages of the hub: an item in the inbox, and a mail."""

from collections.abc import Collection
from datetime import timedelta

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.notifications.errors import MessageNotFound
from hublet.notifications.inbox import service as inbox
from hublet.notifications.mail import mail_queue
from hublet.notifications.messages import store
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.recipients.service import lock_fan_out
from hublet.notifications.records import HUB, POST, HubMessage, InboxItem, Involvement, MessageText


async def notify(
    conn: Connection,
    user_ids: Collection[str],
    text: MessageText,
    *,
    key: PreferenceKey | None,
    not_again_within: timedelta | None = None,
) -> None:
    """Send users a message by inbox and by mail; the preference, if there is one, decides the mail.

    Service accounts and disabled users are skipped.
    """
    for message in await _add_messages(conn, user_ids, text, not_again_within):
        await _deliver(conn, message)
        await mail_queue.queue_message_mail(
            conn, message_id=message.id, user_id=message.user_id, key=key
        )


async def notify_in_inbox(
    conn: Connection,
    user_ids: Collection[str],
    text: MessageText,
    *,
    not_again_within: timedelta | None = None,
) -> None:
    """Send users a message that is not worth a mail."""
    for message in await _add_messages(conn, user_ids, text, not_again_within):
        await _deliver(conn, message)


async def notify_by_mail(
    conn: Connection, user_id: str, text: MessageText, *, key: PreferenceKey | None
) -> None:
    """Send a user, disabled or not, a message that cannot be read on the hub."""
    message = _new_message(user_id, text)
    await store.add_many(conn, [message])
    await mail_queue.queue_message_mail(conn, message_id=message.id, user_id=user_id, key=key)


async def get(conn: Reader, message_id: str, *, user_id: str) -> HubMessage:
    message = await store.find(conn, message_id, user_id=user_id)
    if message is None:
        raise MessageNotFound(message_id)
    return message


async def _add_messages(
    conn: Connection, user_ids: Collection[str], text: MessageText, pause: timedelta | None
) -> list[HubMessage]:
    """Store a message for each recipient, in the order of their ids."""
    await lock_fan_out(conn)
    recipients = await store.list_people(conn, user_ids)
    if pause is not None:
        since = to_micros(now() - pause)
        notified = await store.list_notified(conn, text, recipients, since=since)
        recipients = [user_id for user_id in recipients if user_id not in notified]
    messages = [_new_message(user_id, text) for user_id in recipients]
    await store.add_many(conn, messages)
    return messages


def _new_message(user_id: str, text: MessageText) -> HubMessage:
    return HubMessage(id=new_object_id(), user_id=user_id, text=text, created_at=now())


async def _deliver(conn: Connection, message: HubMessage) -> None:
    item = InboxItem(thread_id=message.id, type=POST, place_id=HUB, event_id=None)
    # It is for this one user, so the involvement is more than watching.
    await inbox.deliver(conn, item, {message.user_id: Involvement.participating})
