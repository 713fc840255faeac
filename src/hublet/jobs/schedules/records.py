"""Records of scheduled jobs."""

from dataclasses import field
from datetime import datetime

from hublet.core.dataclasses import dataclass
from hublet.jobs.request_schemas import JobRequest
from hublet.tokens.delegations import Delegation


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """The last job of a schedule."""

    job_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSkip:
    """The last run that was skipped, and why."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJobRecord:
    id: str
    owner_id: str
    creator_id: str
    # With which of the creator's rights it runs.
    delegation: Delegation
    # The request of each run, without the secrets.
    request: JobRequest = field(repr=False)
    secret_names: tuple[str, ...] = ()
    # As it was written.
    schedule: str
    # Whether a run may start while the one before goes on.
    concurrency: bool
    suspended: bool
    last_run: ScheduleRun | None = None
    last_skip: ScheduleSkip | None = None
    next_run_at: datetime
    created_at: datetime
