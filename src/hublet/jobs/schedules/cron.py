"""Cron expressions: the next time of one, in UTC; five fields, or @daily and the like."""

from datetime import datetime

from cronsim import CronSim, CronSimError

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
    fields = _NAMED.get(schedule.strip().lower(), schedule)
    if len(fields.split()) != _FIELDS:
        raise ScheduleNotReadable
    try:
        due = next(CronSim(fields, moment), None)
    except CronSimError as error:
        raise ScheduleNotReadable(str(error)) from None
    if due is None:
        raise ScheduleNeverDue
    return due
