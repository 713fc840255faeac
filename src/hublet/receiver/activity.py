"""What the landing page remembers of the last deliveries: never a payload, never a secret."""

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

_KEPT = 20


class Seen(NamedTuple):
    # Seconds since 1970.
    at: float
    path: str
    status: int
    milliseconds: float


class Activity:
    def __init__(self) -> None:
        self._seen: deque[Seen] = deque(maxlen=_KEPT)

    def note(self, seen: Seen) -> None:
        self._seen.append(seen)

    def newest_first(self) -> Iterator[Seen]:
        return reversed(self._seen)
