"""A person's answer to a question, as the form of its page brings it back."""

from collections.abc import Iterable

from hublet.core.light_dataclasses import dataclass
from hublet.core.sealing import KeyRing
from hublet.oauth.consents import tickets
from hublet.oauth.consents.tickets import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    ticket: Ticket
    # Those that the person ticked; None is a no.
    organization_ids: frozenset[str] | None


def read_answer(
    keys: KeyRing, fields: Iterable[tuple[str, str]], *, purpose: str, session_id: str
) -> Answer:
    """Read an answer; whatever is not a yes is a no."""
    pairs = list(fields)
    given = dict(pairs)
    ticket = tickets.unseal(
        keys, given.get(tickets.FIELD, ""), purpose=purpose, session_id=session_id
    )
    chosen = frozenset(value for name, value in pairs if name == "organization")
    allowed = given.get("decision") == "allow"
    return Answer(ticket=ticket, organization_ids=chosen if allowed else None)
