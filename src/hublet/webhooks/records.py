"""Records of webhooks: the webhook and who has access to it, its secrets, deliveries, attempts."""

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.accounts.records import Actor, Owner
from hublet.core.dataclasses import dataclass
from hublet.events import RepoSnapshot
from hublet.tokens.delegations import Delegation
from hublet.tokens.records import Caller

# Channels that are woken when a delivery may be due, and when attempts were committed.
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
    # The current name; the name when it was added if it does not exist any more.
    name: str
    # The id of the repository or account, or `missing_target` of a repository that was deleted.
    target: str
    # The account whose avatar is shown; None when it does not exist any more.
    account_id: str | None = None


def missing_target(repo_type: str, name_key: str) -> str:
    """Return the target of a watched repository that does not exist: its type and name."""
    return f"{repo_type}:{name_key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRecord:
    """A webhook; exactly one of `url`, `job` and `job_source_id` is set."""

    id: str
    owner_id: str
    creator_id: str
    url: str | None = None
    # As in the request, in wire names, without its secrets.
    job: dict[str, Any] | None = None
    job_source_id: str | None = None
    # Of whoever last set or changed a webhook that starts a job; None for one with a URL.
    delegation: Delegation | None = None
    # Of whose private repositories it may hear: those that the token could read with which it was
    # set or last changed; None: all that its owner may see.
    private_owners: frozenset[str] | None = None
    secret_names: tuple[str, ...] = ()
    has_secret: bool = False
    # Until then the secret before the present one signs, too; None when there is none.
    old_secret_until: datetime | None = None
    watched: tuple[WatchedItem, ...] = ()
    domains: tuple[Domain, ...] = ()
    state: WebhookState = WebhookState.enabled
    created_at: datetime
    last_trigger_at: datetime | None = None


def may_hear(private_owners: frozenset[str] | None, repo: RepoSnapshot) -> bool:
    """Tell whether the token that set a webhook lets it hear of a repository."""
    return not repo.private or private_owners is None or repo.owner_id in private_owners


def private_owners_from_text(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecrets:
    """Secrets of a webhook in plain text: those that sign, and those of the job it starts."""

    current: str | None = field(default=None, repr=False)
    # Also signs, until then.
    old: str | None = field(default=None, repr=False)
    old_until: datetime | None = None
    for_job: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAccess:
    """Access to an owner's webhooks: a user's own, or an administrator's to the organization's."""

    owner: Owner
    caller: Caller
    # Who acts, as the audit log records it.
    actor: Actor


class DeliveryState(StrEnum):
    """State of a delivery; the last three are final, and a replay starts from any of them."""

    # Committed with its event; no worker has claimed it yet.
    fresh = "fresh"
    # To be tried when it is due.
    pending = "pending"
    delivered = "delivered"
    # Given up: the retry schedule is exhausted, or the target is gone for good.
    failed = "failed"
    # Never tried, or not tried again, for the reason in the same row.
    unsent = "unsent"


class UnsentReason(StrEnum):
    """Why a delivery was not sent."""

    disabled = "disabled"
    suspended = "suspended-after-failure"
    throttled = "throttled"
    no_access = "no-access"


# Why nothing is sent while a webhook is in this state.
UNSENT_REASONS = {
    WebhookState.disabled: UnsentReason.disabled,
    WebhookState.suspended: UnsentReason.suspended,
}


class GivenUpReason(StrEnum):
    """Why a delivery is not tried again."""

    exhausted = "exhausted"
    # The target answered 410.
    gone = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingEvent:
    """The event of a delivery; one object for all deliveries of the same event."""

    id: str
    # Rendered once, without the object that names the webhook.
    payload: bytes = field(repr=False)
    # As it was then.
    repo: RepoSnapshot
    # The span that caused it.
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery that a worker has claimed."""

    id: str
    webhook_id: str
    event: OutgoingEvent
    # Attempts in the current retry schedule, and in all.
    tries: int
    attempts: int
    ping: bool
    due_at: int

    @property
    def is_retry(self) -> bool:
        return self.tries > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt, as it is stored. Times are microseconds; a phase that was skipped is None."""

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
    # Those of the response that help to understand it, in lower case.
    response_headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a claimed delivery, to be written.

    Without an attempt it was not sent, for the reason given, or is released unchanged.
    """

    delivery: ClaimedDelivery
    attempt: Attempt | None = None
    succeeded: bool = False
    unsent: UnsentReason | None = None
    # The target asked never to be called again.
    gone: bool = False
    # Microseconds that the target asked to wait.
    retry_after: int | None = None
