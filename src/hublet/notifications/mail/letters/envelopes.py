"""Turns what a mail says into a letter: addresses, threading, and the way out."""

from hublet.core.clock import now
from hublet.core.hub import Hub
from hublet.core.mail import Letter, domain_of
from hublet.notifications.mail.letters.records import Content
from hublet.notifications.mail.letters.rendering import render
from hublet.notifications.mail.links import unsubscribe_url
from hublet.notifications.mail.records import Recipient
from hublet.notifications.preferences.keys import Key

SETTINGS = "/settings/notifications"


def letter_of(
    hub: Hub, content: Content, *, mail_id: str, to: Recipient, key: Key | None
) -> Letter:
    """Write the letter; the same mail always has the same message id."""
    unsubscribe = None if key is None else unsubscribe_url(hub, to.user_id, key)
    values = {
        **content.values,
        "subject": content.subject,
        "why": content.why,
        "unsubscribe": unsubscribe,
        "settings": hub.settings.base_url + SETTINGS,
    }
    return Letter(
        sender=hub.settings.mail.sender,
        recipient=to.address,
        recipient_name=to.fullname,
        subject=content.subject,
        text=render(f"{content.template}.txt", values),
        html=render(f"{content.template}.html", values),
        message_id=_message_id(hub, mail_id),
        sent_at=now(),
        headers={
            # Nobody's absence note is to answer (RFC 3834).
            "Auto-Submitted": "auto-generated",
            **_threading(hub, content.root),
            **_way_out(unsubscribe),
            **content.headers,
        },
    )


def _message_id(hub: Hub, name: str) -> str:
    return f"<{name}@{domain_of(hub.settings)}>"


def _threading(hub: Hub, root: str | None) -> dict[str, str]:
    # No mail has the id of the root; mail programs put together what answers to it all the same.
    if root is None:
        return {}
    return dict.fromkeys(("In-Reply-To", "References"), _message_id(hub, root))


def _way_out(unsubscribe: str | None) -> dict[str, str]:
    # RFC 8058: one click, without a question.
    if unsubscribe is None:
        return {}
    return {
        "List-Unsubscribe": f"<{unsubscribe}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
