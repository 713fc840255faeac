"""Records of webhooks: the webhook, its owner and secrets, its deliveries and their attempts."""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.accounts.records import Actor
from hublet.core.dataclasses import dataclass
from hublet.events import RepoSnapshot
from hublet.tokens.records import Caller

# Rung when there is something to deliver, and when attempts were made.
DELIVERIES_CHANNEL = "webhook-deliveries"
ATTEMPTS_CHANNEL = "webhook-attempts"


class WebhookState(StrEnum):
    enabled = "enabled"
    disabled = "disabled"
    suspended = "suspended-after-failure"


class Domain(StrEnum):
    """Interface 6.1: repository changes, or discussions and pull requests."""

    repo = "repo"
    discussion = "discussion"


class WatchedType(StrEnum):
    dataset = "dataset"
    model = "model"
    space = "space"
    bucket = "bucket"
    kernel = "kernel"
    container = "container"
    user = "user"
    org = "org"

    @property
    def is_account(self) -> bool:
        return self in {WatchedType.user, WatchedType.org}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedItem:
    type: WatchedType
    # Of today; of the time it was added when it is gone.
    name: str
    # The id of what is watched, or `missing_target` for a repository that was deleted.
    target: str
    # The account whose picture stands beside it; None when it is gone.
    account_id: str | None = None


def missing_target(repo_type: str, name_key: str) -> str:
    """Return what a watched repository is found by while none has its name."""
    return f"{repo_type}:{name_key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRecord:
    """A webhook; exactly one of `url`, `job` and `job_source_id` is set."""

    id: str
    owner_id: str
    creator_id: str
    url: str | None = None
    # As it was asked for, in wire names, without its secrets.
    job: dict[str, Any] | None = None
    job_source_id: str | None = None
    secret_names: tuple[str, ...] = ()
    has_secret: bool = False
    watched: tuple[WatchedItem, ...] = ()
    domains: tuple[Domain, ...] = ()
    state: WebhookState = WebhookState.enabled
    created_at: datetime
    last_trigger_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecrets:
    """What a webhook keeps sealed: how it proves itself, and what its job is given."""

    current: str | None = field(default=None, repr=False)
    # Signs along until then.
    old: str | None = field(default=None, repr=False)
    old_until: datetime | None = None
    for_job: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A user, or an organization for whom one of its administrators acts."""

    id: str
    name: str
    is_organization: bool = False
    caller: Caller
    actor: Actor


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


class UnsentReason(StrEnum):
    """Why a delivery was not sent."""

    disabled = "disabled"
    suspended = "suspended-after-failure"
    throttled = "throttled"
    no_access = "no-access"


class GivenUpReason(StrEnum):
    """Why a delivery is not tried again."""

    exhausted = "exhausted"
    # The target answered 410.
    gone = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingEvent:
    """What a delivery tells of; one object for all deliveries of the same event."""

    id: str
    # Rendered once; the object that names the webhook is still to be added.
    payload: bytes = field(repr=False)
    # As it was then.
    repo: RepoSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """One delivery as it is carried."""

    id: str
    webhook_id: str
    happening: OutgoingEvent
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

    delivery: ClaimedDelivery
    attempt: Attempt | None = None
    succeeded: bool = False
    unsent: UnsentReason | None = None
    # The target asked never to be called again.
    gone: bool = False
    # Microseconds that the target asked to wait.
    retry_after: int | None = None
