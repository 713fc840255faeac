"""Clock: the only source of time, and its forms in the database and on the wire."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Arithmetic and printing without a zone take half the time, and `wire` is on fast routes.
_BARE_EPOCH = _EPOCH.replace(tzinfo=None)
_MICROSECOND = timedelta(microseconds=1)
_SIZES = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}


@dataclass(slots=True)
class _Shift:
    """How far test mode has moved the clock, in both forms so that no read converts."""

    by: timedelta = timedelta()
    micros: int = 0


_shift = _Shift()


def now() -> datetime:
    return datetime.now(UTC) + _shift.by


def micros() -> int:
    """Return microseconds since the epoch, the form in which the database stores time."""
    return time.time_ns() // 1000 + _shift.micros


def monotonic() -> float:
    """Return seconds for measuring durations; moving the clock does not touch them."""
    return time.monotonic()


def process_time() -> float:
    """Return how many seconds of the processors this process has used, all its threads."""
    return time.process_time()


def from_micros(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def to_micros(value: datetime) -> int:
    return (_aware(value) - _EPOCH) // _MICROSECOND


def wire(value: datetime | int) -> str:
    """Write an instant as answers show it, `2026-11-15T01:44:56.123Z`.

    Microseconds are cut, not rounded: an answer never shows a time yet to come.
    """
    if isinstance(value, int):
        moment = _BARE_EPOCH + timedelta(0, 0, value)
    elif value.tzinfo is UTC:
        return value.isoformat("T", "milliseconds")[:-6] + "Z"
    else:
        moment = _aware(value).astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat("T", "milliseconds") + "Z"


def format_duration(length: timedelta) -> str:
    """Format a duration in its greatest unit, as in `3 hours`."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in _SIZES.items():
        if count := seconds // size:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a second"


def move(by: timedelta) -> None:
    """Shift the clock of this process on top of earlier moves. Only for test mode."""
    _set_shift(_shift.by + by)


def reset() -> None:
    _set_shift(timedelta())


def offset() -> timedelta:
    return _shift.by


def _set_shift(by: timedelta) -> None:
    _shift.by = by
    _shift.micros = by // _MICROSECOND


def _aware(value: datetime) -> datetime:
    # Python would silently take a naive time as local time of this machine.
    if value.tzinfo is None:
        raise ValueError("A time needs a time zone.")
    return value
