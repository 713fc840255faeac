"""Checks of the clock."""

from datetime import datetime, timedelta

from hublet.cli.doctor.findings import Finding, ok, problem, warning
from hublet.cli.durations import in_words

_CHECK = "clock"
# Nothing was written before this program was.
_FIRST_YEAR = 2026
_LAST_YEAR = 2100
_TOLERANCE = timedelta(seconds=60)


def check(*, now: datetime, newest: datetime | None, test_mode: bool) -> Finding:
    """Compare the clock with the newest row of the database."""
    shown = f"It is {now:%Y-%m-%d %H:%M:%S} UTC"
    if not _FIRST_YEAR <= now.year < _LAST_YEAR:
        return problem(_CHECK, f"{shown}, says this machine.", "Set its clock, best by NTP.")
    if newest is not None and newest > now + _TOLERANCE:
        return _behind(
            f"{shown}, and the newest row is from {in_words(newest - now)} later.",
            test_mode=test_mode,
        )
    if test_mode:
        return warning(
            _CHECK,
            f"{shown}; in test mode anybody can move the hub's clock.",
            "Never use test mode for data that matters.",
        )
    return ok(_CHECK, f"{shown}.")


def _behind(found: str, *, test_mode: bool) -> Finding:
    if test_mode:
        return warning(
            _CHECK, found, "Somebody moved the clock in test mode; a restart moves it back."
        )
    return problem(_CHECK, found, "Set this machine's clock, best by NTP; else tokens expire late.")
