"""What is shown of a delivery."""

from dataclasses import field

from hublet.core.light_dataclasses import dataclass
from hublet.webhooks.delivery.records import Attempt, DeliveryState

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
class Happening:
    """What a delivery tells of."""

    id: str
    scope: str
    action: str
    repo_type: str
    repo_name: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A delivery as lists show it. Times are microseconds."""

    id: str
    # None when the webhook's owner may not know what happened.
    event: Happening | None
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
class Window:
    """A part of a list: what was found, and where the search ended if it ended early."""

    found: list[Listed]
    # The last delivery that was looked at; None when the page is full or the list is at its end.
    stopped_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a delivery has come: when it differs, there is something to tell."""

    id: str
    state: str
    attempts: int
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state == DeliveryState.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A delivery with its payload and its last attempt, as a stream tells of it."""

    listed: Listed
    # Without the part that names the webhook; None when its owner may not know it.
    payload: bytes | None = field(repr=False)
    last_attempt: Attempt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A delivery with everything that is known of it."""

    listed: Listed
    # Without the part that names the webhook; None when its owner may not know it.
    payload: bytes | None = field(repr=False)
    attempts: list[Attempt]
