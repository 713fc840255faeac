"""What a webhook is."""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from hublet.core.light_dataclasses import dataclass

# Rung when there is something to deliver, and when attempts were made.
DELIVERIES = "webhook-deliveries"
ATTEMPTS = "webhook-attempts"


class State(StrEnum):
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
class Watched:
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
class Webhook:
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
    watched: tuple[Watched, ...] = ()
    domains: tuple[Domain, ...] = ()
    state: State = State.enabled
    created_at: datetime
    last_trigger_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What a webhook keeps sealed: how it proves itself, and what its job is given."""

    current: str | None = field(default=None, repr=False)
    # Signs along until then.
    old: str | None = field(default=None, repr=False)
    old_until: datetime | None = None
    for_job: dict[str, str] = field(default_factory=dict, repr=False)
