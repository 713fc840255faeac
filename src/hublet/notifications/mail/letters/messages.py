"""Mails about what the hub itself tells a user."""

from hublet.core.database import Reader
from hublet.notifications.mail import store
from hublet.notifications.mail.letters.records import Content
from hublet.notifications.mail.records import Mail


async def write(conn: Reader, mail: Mail) -> Content | None:
    """Return what the message says; None when it is gone."""
    message = await store.find_message(conn, mail.about, user_id=mail.user_id)
    if message is None:
        return None
    return Content(
        subject=message.title,
        template="message",
        values={"title": message.title, "body": message.body},
        why="You get this because it concerns your account.",
    )
