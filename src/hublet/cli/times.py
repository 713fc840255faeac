"""Parsers of times: durations such as `90m` or `12h`, and points in time."""

import re
from datetime import UTC, datetime, timedelta

import typer

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MAX_DURATION = timedelta(days=36_500)


def parse_duration(text: str) -> timedelta | None:
    """Return the duration, or None if the text is none, is zero, or exceeds a century."""
    match = re.fullmatch(r"([0-9]{1,8})([mhdw])", text)
    if match is None:
        return None
    length = timedelta(**{_UNITS[match[2]]: int(match[1])})
    return length if timedelta() < length <= _MAX_DURATION else None


def parse_past_time(text: str, *, option: str) -> str:
    """Return a point in time as the API writes it; `2h` means two hours ago."""
    from hublet.core.clock import now, wire

    length = parse_duration(text)
    if length is not None:
        return wire(now() - length)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text} is neither a time ago such as 90m, 12h, 30d or 8w nor a moment such as "
            "2026-11-15T01:44:56Z.",
            param_hint=option,
        ) from None
    # Tables show UTC, so a copied time without a zone means UTC.
    return wire(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
