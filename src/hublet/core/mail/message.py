"""Mail messages before they are encoded, and the errors of sending one.

MailRefused         the server will never accept this message
MailUnavailable     nothing can be sent now
└── MailDelayed     this message cannot, others may
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from hublet.core.dataclasses import dataclass


class MailRefused(Exception):
    pass


class MailUnavailable(Exception):
    pass


class MailDelayed(MailUnavailable):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class MailMessage:
    """A mail to one address. Subject, names and text may hold whatever people wrote."""

    # As in the settings: an address, with or without a name.
    sender: str
    recipient: str
    recipient_name: str = ""
    subject: str
    text: str
    html: str | None = None
    # With the brackets around it.
    message_id: str
    sent_at: datetime
    # Names and values are ours; a link in them stays in one piece.
    headers: Mapping[str, str] = field(default_factory=dict)
