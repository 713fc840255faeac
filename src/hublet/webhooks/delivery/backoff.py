"""Backoff: when a failed delivery is tried again."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

SECOND = 1_000_000
_MINUTE = 60 * SECOND
_HOUR = 60 * _MINUTE

# The waits before each attempt, in microseconds: eleven attempts in about 76 hours.
SCHEDULE = (
    0,
    5 * SECOND,
    30 * SECOND,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)
_JITTER = 0.2
# The longest that all of it can take; what a dead target kept waiting for longer is given up.
WHOLE_SCHEDULE = round(sum(SCHEDULE) * (1 + _JITTER))
LONGEST_RETRY_AFTER = 24 * _HOUR


def next_delay(tries: int, *, chance: float, retry_after: int | None = None) -> int | None:
    """Return the wait after so many attempts, or None when it is time to give up.

    `chance`, from 0 to 1, is the jitter: it spreads what failed together. A target that asks for a
    longer wait gets it.
    """
    if tries >= len(SCHEDULE):
        return None
    delay = round(SCHEDULE[tries] * (1 + _JITTER * (2 * chance - 1)))
    return max(delay, min(retry_after or 0, LONGEST_RETRY_AFTER))


def read_retry_after(value: str | None, *, now: datetime) -> int | None:
    """Read seconds or a date (RFC 9110, 10.2.3) as microseconds from now; nonsense is ignored."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]) * SECOND, LONGEST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date in this form is always meant in universal time.
    wait = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now
    return min(max(round(wait.total_seconds()) * SECOND, 0), LONGEST_RETRY_AFTER)
