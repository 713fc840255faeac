"""What is sent again, and what came of it."""

from hublet.core.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a delivery stands: what decides whether it may be replayed, and whether it was."""

    state: str
    reason: str | None
    attempts: int
    is_claimed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attempt that somebody waits for; without one, why there is none."""

    delivery_id: str
    # None: no answer came.
    status: int | None = None
    reason: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Which deliveries of a webhook are sent again. Times are microseconds."""

    webhook_id: str
    since: int
    # Not itself.
    until: int
    # The last delivery that was put back already.
    after: str = ""
