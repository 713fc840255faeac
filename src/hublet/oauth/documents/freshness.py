"""How long a document is taken as it is, from the headers that came with it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

SHORTEST = timedelta(seconds=60)
LONGEST = timedelta(hours=24)
# When the site says nothing.
USUAL = timedelta(hours=1)

_MAX_AGE = re.compile(r'max-age\s*=\s*"?([0-9]{1,12})"?', re.IGNORECASE)


def freshness(headers: Mapping[str, str], *, now: datetime) -> timedelta:
    """Follow the site within bounds: one login needs one fetch, and a change is seen in a day."""
    directives = [each.strip() for each in headers.get("cache-control", "").split(",")]
    if {"no-store", "no-cache"} & {each.lower() for each in directives}:
        return SHORTEST
    for directive in directives:
        if age := _MAX_AGE.fullmatch(directive):
            return _bounded(int(age[1]))
    if "expires" in headers:
        return _bounded(_seconds_until(headers["expires"], now))
    return USUAL


def _bounded(seconds: float) -> timedelta:
    within = min(max(seconds, SHORTEST.total_seconds()), LONGEST.total_seconds())
    return timedelta(seconds=within)


def _seconds_until(text: str, now: datetime) -> float:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        # RFC 9111, 5.3: a broken date lies in the past.
        return 0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - now).total_seconds()
