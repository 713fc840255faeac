"""Whether a mail is still to be sent, and what it says then."""

from hublet.core.database import Reader
from hublet.core.mail import Letter
from hublet.notifications.mail import store
from hublet.notifications.mail.letters import digests, messages, tags, threads
from hublet.notifications.mail.letters.envelopes import letter_of
from hublet.notifications.mail.records import Kind, Mail, Recipient
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.keys import Key

_WRITERS = {
    Kind.thread: threads.write,
    Kind.message: messages.write,
    Kind.digest: digests.write,
    Kind.tags: tags.write,
}
# What somebody whose account is switched off still has to hear.
_EVEN_DISABLED = frozenset({Key.locked_out, None})


async def compose(conn: Reader, mail: Mail) -> Letter | None:
    """Write the letter as things are now; None when nobody is to get it any more."""
    recipient = (await store.find_recipients(conn, [mail.user_id])).get(mail.user_id)
    if recipient is None or not await _is_wanted(conn, mail, recipient):
        return None
    content = await _WRITERS[mail.kind](conn, mail)
    if content is None:
        return None
    return letter_of(conn.hub, content, mail_id=mail.id, to=recipient, key=mail.key)


async def _is_wanted(conn: Reader, mail: Mail, recipient: Recipient) -> bool:
    if recipient.disabled and mail.key not in _EVEN_DISABLED:
        return False
    if mail.key is not None and not await preferences.who_wants(conn, mail.key, [mail.user_id]):
        return False
    # What somebody has read in the inbox is no news; a message of the hub is told both ways.
    return (
        mail.kind is not Kind.thread
        or not mail.in_inbox
        or await store.is_unread(conn, mail.about, user_id=mail.user_id)
    )
