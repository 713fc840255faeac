"""Form of a consent question: the sealed ticket that it carries, and the decision that comes back
with it.

Nothing else of the form is trusted. A ticket is valid for ten minutes, in the session that it was made
for.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from hublet.core.clock import micros
from hublet.core.dataclasses import dataclass
from hublet.core.ids import random_bytes
from hublet.core.sealing import KeyRing, SealBroken
from hublet.oauth.errors import TicketInvalid

TICKET_LIFE = timedelta(minutes=10)
# The hidden field that carries the ticket.
TICKET_FIELD = "ticket"


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    # The query of an authorization request, or the digest of a device code.
    subject: str
    # The app's revision that the page showed.
    revision: int
    expires_at: int


def new_ticket(*, subject: str, revision: int) -> Ticket:
    return Ticket(
        id=random_bytes(16).hex(),
        subject=subject,
        revision=revision,
        expires_at=micros() + TICKET_LIFE // timedelta(microseconds=1),
    )


def seal_ticket(keys: KeyRing, ticket: Ticket, *, purpose: str, session_id: str) -> str:
    sealed = keys.seal(msgspec.json.encode(ticket), context=_context(purpose, session_id))
    return urlsafe_b64encode(sealed).decode()


def unseal_ticket(keys: KeyRing, text: str, *, purpose: str, session_id: str) -> Ticket:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentDecision:
    ticket: Ticket
    # The organizations that the person selected; None when they denied.
    organization_ids: frozenset[str] | None


def read_decision(
    keys: KeyRing, fields: Iterable[tuple[str, str]], *, purpose: str, session_id: str
) -> ConsentDecision:
    """Read the decision from a form; everything but `allow` is a no."""
    pairs = list(fields)
    values = dict(pairs)
    ticket = unseal_ticket(
        keys, values.get(TICKET_FIELD, ""), purpose=purpose, session_id=session_id
    )
    chosen = frozenset(value for name, value in pairs if name == "organization")
    allowed = values.get("decision") == "allow"
    return ConsentDecision(ticket=ticket, organization_ids=chosen if allowed else None)
