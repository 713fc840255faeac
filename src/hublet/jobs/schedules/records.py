"""Records of scheduled jobs, and cron expressions: the next times of one, in UTC, and its words."""

from dataclasses import field
from datetime import datetime
from itertools import islice

from cronsim import CronSim, CronSimError

from hublet.core.clock import now
from hublet.core.dataclasses import dataclass
from hublet.jobs.errors import ScheduleNeverDue, ScheduleNotReadable
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


_NAMED = {
    "@annually": "0 0 1 1 *",
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# A sixth, for seconds, would allow more than one run a minute.
_FIELDS = 5


def next_after(schedule: str, moment: datetime) -> datetime:
    """Return the first time of a schedule after a moment in UTC, on a whole minute."""
    return next_runs(schedule, moment, count=1)[0]


def next_runs(schedule: str, moment: datetime, *, count: int) -> list[datetime]:
    """Return the first times of a schedule after a moment in UTC; there is at least one."""
    runs = list(islice(_read(schedule, moment), count))
    if not runs:
        raise ScheduleNeverDue
    return runs


def describe_schedule(schedule: str) -> str:
    """Return a schedule in words: `At 09:00 on Monday`."""
    return _read(schedule, now()).explain()


def _read(schedule: str, moment: datetime) -> CronSim:
    fields = _NAMED.get(schedule.strip().lower(), schedule)
    if len(fields.split()) != _FIELDS:
        raise ScheduleNotReadable
    try:
        return CronSim(fields, moment)
    except CronSimError as error:
        raise ScheduleNotReadable(str(error)) from None
