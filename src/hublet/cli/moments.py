"""Moments as a person writes them: so long ago, or a date and time."""

from datetime import UTC, datetime

import typer

from hublet.cli.durations import read_duration


def read_past(text: str, *, option: str) -> str:
    """Return the moment in the form of the wire; `2h` means two hours ago."""
    from hublet.core.clock import now, wire

    length = read_duration(text)
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
    # Tables show UTC, and what is copied from them must mean the same.
    return wire(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
