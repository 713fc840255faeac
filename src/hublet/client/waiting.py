"""Waiting in a command, which has nothing else to do meanwhile."""

from collections.abc import Iterator
from threading import Event

_FIRST_SECONDS = 1.0
LONGEST_SECONDS = 30.0


def pause(seconds: float) -> None:
    Event().wait(seconds)


def growing(first: float = _FIRST_SECONDS) -> Iterator[float]:
    """Yield how long to wait before each further try."""
    seconds = first
    while True:
        yield seconds
        seconds = min(seconds * 2, LONGEST_SECONDS)
