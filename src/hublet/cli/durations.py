"""Lengths of time as a person writes them: `90m`, `12h`, `30d`, `8w`."""

import re
from datetime import timedelta

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SIZES = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_LONGEST = timedelta(days=36_500)


def read_duration(text: str) -> timedelta | None:
    """Return the length, or None for what is none, is nothing, or is longer than a century."""
    match = re.fullmatch(r"([0-9]{1,8})([mhdw])", text)
    if match is None:
        return None
    length = timedelta(**{_UNITS[match[2]]: int(match[1])})
    return length if timedelta() < length <= _LONGEST else None


def in_words(length: timedelta) -> str:
    """Name a length by its greatest unit, as one would say it: `3 hours`."""
    seconds = max(0, int(length.total_seconds()))
    for unit, size in _SIZES.items():
        if count := seconds // size:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a second"
