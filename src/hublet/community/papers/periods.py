"""Periods of the daily papers: the span of a day, a week or a month, in UTC."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta

from hublet.community.errors import InvalidDay

Span = tuple[datetime, datetime]

_YEAR = "(19|2[0-9])[0-9]{2}"
_DAY = re.compile(f"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}")
_WEEK = re.compile(f"{_YEAR}-W[0-9]{{2}}")
_MONTH = re.compile(f"{_YEAR}-[0-9]{{2}}")


def span_of(*, day: str | None, week: str | None, month: str | None) -> Span | None:
    """Return the start and the end of the period; None when no period is given."""
    kinds = ((_day, day), (_week, week), (_month, month))
    given = [(parse, text) for parse, text in kinds if text is not None]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidDay("Give only one of date, week and month.")
    ((parse, text),) = given
    first, after = parse(text)
    return datetime.combine(first, time(), UTC), datetime.combine(after, time(), UTC)


def _day(text: str) -> tuple[date, date]:
    first = _date(text, _DAY, end="")
    if first is None:
        raise InvalidDay("date must be a day such as 2026-11-15.")
    return first, first + timedelta(days=1)


def _week(text: str) -> tuple[date, date]:
    first = _date(text, _WEEK, end="-1")
    if first is None:
        raise InvalidDay("week must be a week such as 2026-W46.")
    return first, first + timedelta(days=7)


def _month(text: str) -> tuple[date, date]:
    first = _date(text, _MONTH, end="-01")
    if first is None:
        raise InvalidDay("month must be a month such as 2026-11.")
    return first, (first + timedelta(days=31)).replace(day=1)


def _date(text: str, pattern: re.Pattern[str], *, end: str) -> date | None:
    with suppress(ValueError):
        if pattern.fullmatch(text):
            return date.fromisoformat(text + end)
    return None
