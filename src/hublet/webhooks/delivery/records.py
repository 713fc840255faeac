"""What a delivery is, and what became of an attempt."""

from dataclasses import field
from enum import StrEnum

from hublet.core.light_dataclasses import dataclass
from hublet.events import RepoSnapshot


class DeliveryState(StrEnum):
    """Where a delivery stands; the last three are ends, and a replay starts from any of them."""

    # Committed with its event; nobody has looked at it.
    fresh = "fresh"
    # To be tried when it is due.
    pending = "pending"
    delivered = "delivered"
    # Given up: the schedule is spent, or the target is gone for good.
    failed = "failed"
    # Never tried, or not tried again, for the reason that stands beside it.
    unsent = "unsent"


class Unsent(StrEnum):
    """Why a delivery was not sent."""

    disabled = "disabled"
    suspended = "suspended-after-failure"
    throttled = "throttled"
    no_access = "no-access"


class GivenUp(StrEnum):
    """Why a delivery is not tried again."""

    exhausted = "exhausted"
    # The target answered 410.
    gone = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What a delivery tells of; one object for all deliveries of the same event."""

    id: str
    # Rendered once; the object that names the webhook is still to be added.
    payload: bytes = field(repr=False)
    # As it was then.
    repo: RepoSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One delivery as it is carried."""

    id: str
    webhook_id: str
    happening: Happening
    # Of the schedule that is running, and in all.
    tries: int
    attempts: int
    ping: bool
    due_at: int

    @property
    def is_retry(self) -> bool:
        return self.tries > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try, as it is kept. Times are microseconds; a phase that did not happen is None."""

    number: int
    started_at: int
    target: str | None = None
    job_id: str | None = None
    status: int | None = None
    reason: str | None = None
    detail: str | None = None
    dns_micros: int | None = None
    connect_micros: int | None = None
    tls_micros: int | None = None
    first_byte_micros: int | None = None
    total_micros: int
    response: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is to be written about a delivery that was held.

    Without an attempt it was not sent, for the reason given, or is handed back untouched.
    """

    delivery: Delivery
    attempt: Attempt | None = None
    succeeded: bool = False
    unsent: Unsent | None = None
    # The target asked never to be called again.
    gone: bool = False
    # Microseconds that the target asked to wait.
    retry_after: int | None = None
