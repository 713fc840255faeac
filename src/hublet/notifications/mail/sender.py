"""Sender of mails: writes each letter from the current state, and sends it to the mail server; and the tasks
of mail, which run outside of the transaction that asked.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from hublet.accounts.invitations import SEND_INVITATION, InvitationMail
from hublet.core import clock
from hublet.core.clock import now
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.hub import Hub
from hublet.core.logs import get_logger
from hublet.core.mail import (
    MailDelayed,
    MailMessage,
    MailRefused,
    MailTransport,
    MailUnavailable,
    mail_domain,
    open_transport,
)
from hublet.core.queue import handles, handles_slowly
from hublet.login.password_resets import SEND_RESET_LINK, ResetRequest
from hublet.login.sign_up import SEND_ADDRESS_TAKEN, ClaimedAddress
from hublet.notifications.mail import activity, digest, links, mail_queue, store, tags
from hublet.notifications.mail.letters import MailContent, render
from hublet.notifications.mail.links import unsubscribe_url
from hublet.notifications.mail.records import MailKind, MailRecipient, QueuedMail
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.switches import PreferenceKey

log = get_logger("mail")
SETTINGS_PATH = "/settings/notifications"
# A mail that cannot be sent is tried again when it is twice as old, within these bounds.
_SHORTEST_WAIT = timedelta(seconds=1)
_LONGEST_WAIT = timedelta(hours=1)
# With an older one the task fails, and is parked in the end.
_GIVEN_UP_AFTER = timedelta(days=3)


async def send(database: Database, mail_ids: Sequence[str]) -> None:
    """Send these mails, each once; those that cannot be sent now are queued again."""
    async with database.transaction() as conn:
        mails = await store.close(conn, mail_ids)
    delayed = await _send_all(database, mails)
    if not delayed:
        return
    wait = retry_delay(clock.now() - min(mail.created_at for mail in delayed))
    async with database.transaction() as conn:
        await mail_queue.schedule(conn, [mail.id for mail in delayed], delay=wait)
    log.warning("mails wait", count=len(delayed), seconds=round(wait.total_seconds()))


def retry_delay(age: timedelta) -> timedelta:
    if age > _GIVEN_UP_AFTER:
        raise MailUnavailable("The mail server has not taken these mails for three days.")
    return min(max(age, _SHORTEST_WAIT), _LONGEST_WAIT)


async def _send_all(database: Database, mails: Sequence[QueuedMail]) -> list[QueuedMail]:
    """Send what can be sent; return what is delayed."""
    delayed: list[QueuedMail] = []
    broken: Exception | None = None
    async with open_transport(database.hub.settings) as transport:
        for place, mail in enumerate(mails):
            try:
                await _send(database, transport, mail)
            except MailDelayed as error:
                log.warning("mail delayed", mail=mail.id, reason=str(error))
                delayed.append(mail)
            except MailUnavailable as error:
                log.warning("mail cannot be sent", reason=str(error))
                delayed += mails[place:]
                break
            except DatabaseUnavailable:
                raise
            except Exception as error:
                # A mail that cannot be written must not delay those after it.
                log.exception("mail failed", mail=mail.id, kind=mail.kind)
                broken = error
    if broken is not None:
        raise broken
    return delayed


async def _send(database: Database, transport: MailTransport, mail: QueuedMail) -> None:
    async with database.read() as conn:
        letter = await compose(conn, mail)
    if letter is not None:
        try:
            await transport.send(letter)
            log.info("mail sent", mail=mail.id, kind=mail.kind, key=mail.key)
        except MailRefused as error:
            log.warning("mail refused", mail=mail.id, kind=mail.kind, reason=str(error))
    async with database.transaction() as conn:
        await store.remove(conn, [mail.id])


async def compose(conn: Reader, mail: QueuedMail) -> MailMessage | None:
    """Write the letter from the current state; None when it is not wanted any more."""
    recipient = (await store.find_recipients(conn, [mail.user_id])).get(mail.user_id)
    if recipient is None or not await _is_wanted(conn, mail, recipient):
        return None
    content = await _WRITERS[mail.kind](conn, mail)
    if content is None:
        return None
    return write_letter(conn.hub, content, mail_id=mail.id, to=recipient, key=mail.key)


async def _is_wanted(conn: Reader, mail: QueuedMail, recipient: MailRecipient) -> bool:
    if recipient.disabled and mail.key not in _KEYS_WHEN_DISABLED:
        return False
    if mail.key is not None and not await preferences.who_wants(conn, mail.key, [mail.user_id]):
        return False
    # What was read in the inbox is not mailed; a message of the hub is sent both ways.
    return (
        mail.kind is not MailKind.thread
        or not mail.in_inbox
        or await store.is_unread(conn, mail.about, user_id=mail.user_id)
    )


def write_letter(
    hub: Hub, content: MailContent, *, mail_id: str, to: MailRecipient, key: PreferenceKey | None
) -> MailMessage:
    """Write the letter; the same mail always has the same message id."""
    unsubscribe = None if key is None else unsubscribe_url(hub, to.user_id, key)
    values = {
        **content.values,
        "subject": content.subject,
        "why": content.why,
        "unsubscribe": unsubscribe,
        "settings": hub.settings.base_url + SETTINGS_PATH,
    }
    return MailMessage(
        sender=hub.settings.mail.sender,
        recipient=to.address,
        recipient_name=to.fullname,
        subject=content.subject,
        text=render(f"{content.template}.txt", values),
        html=render(f"{content.template}.html", values),
        message_id=_message_id(hub, mail_id),
        sent_at=now(),
        headers={
            # No absence note is to answer (RFC 3834).
            "Auto-Submitted": "auto-generated",
            **_threading_headers(hub, content.root),
            **_unsubscribe_headers(unsubscribe),
            **content.headers,
        },
    )


def _message_id(hub: Hub, name: str) -> str:
    return f"<{name}@{mail_domain(hub.settings)}>"


def _threading_headers(hub: Hub, root: str | None) -> dict[str, str]:
    # No mail has the id of the root; mail programs group the mails that refer to it all the same.
    if root is None:
        return {}
    return dict.fromkeys(("In-Reply-To", "References"), _message_id(hub, root))


def _unsubscribe_headers(unsubscribe: str | None) -> dict[str, str]:
    # RFC 8058: one click, without a question.
    if unsubscribe is None:
        return {}
    return {
        "List-Unsubscribe": f"<{unsubscribe}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


async def write_message_mail(conn: Reader, mail: QueuedMail) -> MailContent | None:
    """Return the content of a message of the hub; None when it was deleted."""
    message = await store.find_message(conn, mail.about, user_id=mail.user_id)
    if message is None:
        return None
    return MailContent(
        subject=message.title,
        template="message",
        values={"title": message.title, "body": message.body},
        why="You get this because it concerns your account.",
    )


_WRITERS = {
    MailKind.thread: activity.write_thread_mail,
    MailKind.message: write_message_mail,
    MailKind.digest: digest.write_digest_mail,
    MailKind.tags: tags.write_tags_mail,
}


# What is sent to a disabled user all the same.
_KEYS_WHEN_DISABLED = frozenset({PreferenceKey.locked_out, None})


@handles_slowly(mail_queue.SEND)
async def send_mails(database: Database, body: dict[str, Any]) -> None:
    await send(database, body["mail_ids"])


@handles(digest.BEGIN)
async def begin_digest(conn: Connection, _body: dict[str, Any]) -> None:
    await digest.begin(conn)


@handles(digest.GO_ON)
async def mail_digest_page(conn: Connection, body: dict[str, Any]) -> None:
    await digest.mail_page(conn, day=body["day"], after=body["after"])


@handles(tags.NOTIFY_OF_TAGS, reads=tags.NewTags)
async def notify_of_tags(conn: Connection, new_tags: tags.NewTags) -> None:
    await tags.notify_watchers(conn, new_tags)


@handles_slowly(links.SEND_VERIFICATION)
async def send_verification(database: Database, body: dict[str, Any]) -> None:
    await links.send_verification(database, email_id=body["email_id"])


# Mails with a link: whoever asked for them queued the tasks.
handles_slowly(SEND_RESET_LINK, reads=ResetRequest)(links.send_reset_link)
handles_slowly(SEND_INVITATION, reads=InvitationMail)(links.send_invitation)
handles_slowly(SEND_ADDRESS_TAKEN, reads=ClaimedAddress)(links.send_address_taken)
