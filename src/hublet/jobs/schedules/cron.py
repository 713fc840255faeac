"""Cron expressions: the next times of one, in UTC, and its words; five fields, or @daily and the like."""

from datetime import datetime
from itertools import islice

from cronsim import CronSim, CronSimError

from hublet.core.clock import now
from hublet.jobs.errors import ScheduleNeverDue, ScheduleNotReadable

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


def describe(schedule: str) -> str:
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
