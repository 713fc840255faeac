"""Records of the delivery log: summaries, pages and details of deliveries, replays, recoveries."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from hublet.core.dataclasses import dataclass
from hublet.webhooks.delivery.health import Health
from hublet.webhooks.records import Attempt, DeliveryState

# Beyond every moment that is ever compared with it.
FOREVER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySummary:
    """What a webhook does, beyond its record and its deliveries."""

    # The secrets that its jobs get; of a webhook with a URL none.
    secret_names: tuple[str, ...]
    # In whose name its jobs are started.
    runs_as: str | None
    # In the current day of the limit, which begins with a trigger and has 24 hours.
    triggers: int
    daily_limit: int | None

    @property
    def is_throttled(self) -> bool:
        return self.daily_limit is not None and self.triggers >= self.daily_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Filter of the delivery log; an empty field matches everything. Times are microseconds."""

    states: tuple[DeliveryState, ...] = ()
    reason: str = ""
    scope: str = ""
    # In the form owner/name, as the repository was called at the time of the event.
    repo: str = ""
    since: int = 0
    # Exclusive.
    until: int = FOREVER


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSummary:
    """The event of a delivery."""

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
    # None when the webhook's owner may not know of the event.
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
        # Whether a worker has seen it yet does not matter to its owner.
        return self.state in PENDING


PENDING = (DeliveryState.fresh, DeliveryState.pending)


def states_named(name: str | None) -> tuple[DeliveryState, ...]:
    """Return the states that callers know by one name; none stands for all of them."""
    if name is None:
        return ()
    return PENDING if name == "pending" else (DeliveryState(name),)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPage:
    """A page of the log: the matches, and where the search ended if it ended early."""

    deliveries: list[DeliverySummary]
    # The last delivery that was examined; None when the page is full or the list is at its end.
    stopped_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryProgress:
    """Progress of a delivery: when it differs, the stream sends the delivery again."""

    id: str
    state: str
    attempts: int
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state == DeliveryState.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryUpdate:
    """A delivery with its payload and its last attempt, as the stream sends it."""

    summary: DeliverySummary
    # Without the part that names the webhook; None when its owner may not know it.
    payload: bytes | None = field(repr=False)
    last_attempt: Attempt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDetails:
    """A delivery with its payload and all its attempts."""

    summary: DeliverySummary
    # Without the part that names the webhook; None when its owner may not know it.
    payload: bytes | None = field(repr=False)
    attempts: list[Attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """Status of a delivery: decides whether it may be replayed, and whether it was."""

    state: str
    reason: str | None
    attempts: int
    is_claimed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Result of an attempt that a request waits for; without one, why there is none."""

    delivery_id: str
    # None: no response came.
    status: int | None = None
    reason: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Which deliveries of a webhook are sent again. Times are microseconds."""

    webhook_id: str
    since: int
    # Exclusive.
    until: int
    # The last delivery that was restarted already.
    after: str = ""


class HealthState(StrEnum):
    """How a webhook fares, in one word."""

    well = "well"
    # Only probed, because the last attempts failed.
    degraded = "degraded"
    # Disabled by the hub, or by its owner.
    suspended = "suspended"
    paused = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookHealth:
    """Health of a webhook, and what happened at its target last. Times are microseconds."""

    state: HealthState
    target: Health = Health()
    # When the hub tries again by itself; None when nothing waits.
    next_attempt_at: int | None = None
    newest: DeliverySummary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HourCount:
    """Deliveries of one hour: those that arrived, and those whose attempts failed; no pings."""

    # Microseconds at which the hour begins.
    start: int
    delivered: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long one attempt waited for a whole response, in microseconds."""

    started_at: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatistics:
    """Statistics of one webhook: its last 24 hours, and how its newest deliveries stand."""

    hours: list[HourCount]
    latencies: list[Latency]
    newest_attempt: Attempt | None
    # By state, of at most `MOST_COUNTED` deliveries.
    counts: Mapping[DeliveryState, int]
    # Changes whenever something that pages of the webhook show has changed.
    version: int
