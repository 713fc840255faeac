"""Log of a pull: lines at the start of the job's own log, so that somebody who waits sees why."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from hublet.core import clock
from hublet.runtime.shim.log import Log

# Between two lines that say how far it is.
_PROGRESS_SECONDS = 2.0
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


class PullLog:
    """What one pull tells: it opens the log with its first line."""

    def __init__(
        self, path: Path, *, limit: int, now: Callable[[], float] = clock.monotonic
    ) -> None:
        self._path = path
        self._limit = limit
        self._now = now
        self._reported_at = now()
        self._layers = self._layers_done = 0
        self._bytes = self._bytes_done = 0

    def add(self, line: str) -> None:
        """Append a line; the log of the attempt itself goes on after it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        offset = clock.offset() // timedelta(microseconds=1)
        log = Log(str(self._path), limit=self._limit, offset=offset)
        try:
            log.add(f"===== {line} =====\n".encode(errors="replace"))
        finally:
            log.shut()

    def expect(self, layers: int, size: int) -> None:
        self._layers, self._bytes = layers, size
        self._reported_at = self._now()

    def count_bytes(self, number: int) -> None:
        self._bytes_done += number
        if self._now() - self._reported_at >= _PROGRESS_SECONDS:
            self._report()

    def count_layer(self) -> None:
        self._layers_done += 1
        self._report()

    def _report(self) -> None:
        self._reported_at = self._now()
        self.add(
            f"Pulled {self._layers_done} of {self._layers} layers, "
            f"{format_size(self._bytes_done)} of {format_size(self._bytes)}"
        )


def format_size(size: int) -> str:
    for unit, name in _UNITS:
        if abs(size) >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
