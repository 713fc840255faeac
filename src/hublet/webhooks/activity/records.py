"""Records of the delivery log: what is shown of a delivery, and what is sent again."""

from dataclasses import field

from hublet.core.dataclasses import dataclass
from hublet.webhooks.records import Attempt, DeliveryState

# Beyond every moment that is ever compared with it.
FOREVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries are asked for; what is empty does not count. Times are microseconds."""

    states: tuple[DeliveryState, ...] = ()
    reason: str = ""
    scope: str = ""
    # In the form owner/name, as the repository was called when it happened.
    repo: str = ""
    since: int = 0
    # Not itself.
    until: int = FOREVER


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSummary:
    """What a delivery tells of."""

    id: str
    scope: str
    action: str
    repo_type: str
    repo_name: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySummary:
    """A delivery as lists show it. Times are microseconds."""

    id: str
    # None when the webhook's owner may not know what happened.
    event: EventSummary | None
    state: DeliveryState
    reason: str | None
    ping: bool
    attempts: int
    status: int | None
    due_at: int
    created_at: int
    finished_at: int | None

    @property
    def is_pending(self) -> bool:
        # That nobody has looked at it yet is no news to its owner.
        return self.state in PENDING


PENDING = (DeliveryState.fresh, DeliveryState.pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPage:
    """A part of a list: what was found, and where the search ended if it ended early."""

    found: list[DeliverySummary]
    # The last delivery that was looked at; None when the page is full or the list is at its end.
    stopped_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryProgress:
    """How far a delivery has come: when it differs, there is something to tell."""

    id: str
    state: str
    attempts: int
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state == DeliveryState.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryUpdate:
    """A delivery with its payload and its last attempt, as a stream tells of it."""

    listed: DeliverySummary
    # Without the part that names the webhook; None when its owner may not know it.
    payload: bytes | None = field(repr=False)
    last_attempt: Attempt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDetails:
    """A delivery with everything that is known of it."""

    listed: DeliverySummary
    # Without the part that names the webhook; None when its owner may not know it.
    payload: bytes | None = field(repr=False)
    attempts: list[Attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """Where a delivery stands: what decides whether it may be replayed, and whether it was."""

    state: str
    reason: str | None
    attempts: int
    is_claimed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
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
