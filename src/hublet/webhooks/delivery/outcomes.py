"""Outcomes of attempts: each leaves its delivery delivered, failed, unsent, or due again."""

from hublet.core.dataclasses import dataclass
from hublet.webhooks.delivery.backoff import next_delay
from hublet.webhooks.records import DeliveryState, GivenUpReason, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is written of a delivery; those that are alike are written together."""

    state: DeliveryState
    reason: str | None = None
    status: int | None = None
    # 1 when an attempt was made, else 0.
    tried: int = 0


def ending_of(outcome: Outcome, *, now: int, chance: float) -> tuple[Ending, int | None]:
    """Return the ending, and when the delivery is due again if this says so."""
    attempt = outcome.attempt
    if attempt is None:
        if outcome.unsent is not None:
            return Ending(state=DeliveryState.unsent, reason=outcome.unsent), None
        return Ending(state=DeliveryState.pending), None
    status = attempt.status
    if outcome.succeeded:
        return Ending(state=DeliveryState.delivered, status=status, tried=1), None
    if outcome.delivery.ping:
        failed = DeliveryState.failed
        return Ending(state=failed, reason=attempt.reason, status=status, tried=1), None
    tries = outcome.delivery.tries + 1
    delay = next_delay(tries, chance=chance, retry_after=outcome.retry_after)
    if outcome.gone or delay is None:
        reason = GivenUpReason.gone if outcome.gone else GivenUpReason.exhausted
        return Ending(state=DeliveryState.failed, reason=reason, status=status, tried=1), None
    pending = DeliveryState.pending
    return Ending(state=pending, reason=attempt.reason, status=status, tried=1), now + delay
