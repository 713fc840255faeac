"""The question that a page asked, sealed so that the form can bring it back unchanged.

Nothing else of a form is believed: the ticket fits only the session that it was made for, and
only for ten minutes.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta

import msgspec

from hublet.core.clock import micros
from hublet.core.errors import InvalidRequest
from hublet.core.ids import random_bytes
from hublet.core.sealing import KeyRing, SealBroken

LIFE = timedelta(minutes=10)
# The hidden field that carries it.
FIELD = "ticket"


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    # What is asked about: the query of an authorization request, or a device.
    subject: str
    # The app's revision that the page showed.
    revision: int
    expires_at: int


class TicketInvalid(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "The page is too old, or belongs to another session. Go back to the app and start again."
        )


def new_ticket(*, subject: str, revision: int) -> Ticket:
    return Ticket(
        id=random_bytes(16).hex(),
        subject=subject,
        revision=revision,
        expires_at=micros() + LIFE // timedelta(microseconds=1),
    )


def seal(keys: KeyRing, ticket: Ticket, *, purpose: str, session_id: str) -> str:
    sealed = keys.seal(msgspec.json.encode(ticket), context=_context(purpose, session_id))
    return urlsafe_b64encode(sealed).decode()


def unseal(keys: KeyRing, text: str, *, purpose: str, session_id: str) -> Ticket:
    try:
        sealed = urlsafe_b64decode(text.encode("ascii"))
        ticket = msgspec.json.decode(
            keys.open(sealed, context=_context(purpose, session_id)), type=Ticket
        )
    except (ValueError, SealBroken):
        raise TicketInvalid from None
    if ticket.expires_at < micros():
        raise TicketInvalid
    return ticket


def _context(purpose: str, session_id: str) -> str:
    return f"oauth ticket {purpose} {session_id}"
