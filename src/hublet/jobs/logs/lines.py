"""Lines of a log by their numbers: how many there are, ranges of them, and a search in all of them.

A log may have a million lines and is never read whole into memory: an index has the number of lines
before each block of the file, and grows with it. All of it blocks: call it in a thread.
"""

import os
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from hublet.core.dataclasses import dataclass

_BLOCK_BYTES = 256 * 1024
_SEARCH_BYTES = 1024 * 1024
# Until the year 2286.
_MAX_STAMP = 16
# An index has a number for each block, so it takes less than a thousandth of its log.
_MOST_INDEXES = 256
# What a page shows of a log, at most: a line may have 64 KiB.
MOST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    # From 1.
    number: int
    # In microseconds.
    at: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """Lines that follow each other, and how many the log has."""

    lines: tuple[LogLine, ...]
    total: int
    # The offset after the last of them.
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMatches:
    """The lines that have a text: the first ones of them, and how many there are."""

    lines: tuple[LogLine, ...]
    count: int
    total: int


class _LineIndex:
    """The number of line ends before each block of a log."""

    def __init__(self) -> None:
        self._counts = [0]
        self._lock = threading.Lock()

    def count(self, file: int) -> int:
        """Return the number of whole lines, after a look at what has been written since."""
        size = os.fstat(file).st_size
        with self._lock:
            if size < (len(self._counts) - 1) * _BLOCK_BYTES:
                self._counts = [0]
            while len(self._counts) * _BLOCK_BYTES <= size:
                self._counts.append(
                    self._counts[-1] + _block(file, len(self._counts) - 1).count(b"\n")
                )
            return self._counts[-1] + _block(file, len(self._counts) - 1).count(b"\n")

    def offset_of(self, file: int, number: int) -> int:
        """Return the offset of a line, which is the end of the one before it."""
        ends = number - 1
        if ends <= 0:
            return 0
        with self._lock:
            block = bisect_left(self._counts, ends) - 1
            missing = ends - self._counts[block]
        data, place = _block(file, block), -1
        for _ in range(missing):
            place = data.find(b"\n", place + 1)
        return block * _BLOCK_BYTES + place + 1


def _block(file: int, number: int) -> bytes:
    return os.pread(file, _BLOCK_BYTES, number * _BLOCK_BYTES)


@dataclass(slots=True)
class LogLines:
    """Reads lines of logs, and remembers the indexes of those that were read last."""

    _indexes: OrderedDict[Path, _LineIndex] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, log: Path) -> int:
        """Return the number of whole lines; a log that does not exist has none."""
        with _opened(log) as file:
            return 0 if file is None else self._index_of(log).count(file)

    def read(self, log: Path, first: int, *, count: int, most_bytes: int = MOST_BYTES) -> LogRange:
        """Return lines from a number on; fewer where the log ends or they are very long."""
        with _opened(log) as file:
            if file is None:
                return LogRange(lines=(), total=0)
            index = self._index_of(log)
            total = index.count(file)
            first = max(1, first)
            if first > total:
                return LogRange(lines=(), total=total)
            start = index.offset_of(file, first)
            last = min(total, first + count - 1)
            end = index.offset_of(file, last + 1)
            data = os.pread(file, min(end - start, most_bytes), start)
            # What is cut has no end, and at least one line is returned.
            size = data.rfind(b"\n") + 1 or len(data)
            return LogRange(lines=_parse(data[:size], first=first), total=total, end=start + size)

    def read_tail(self, log: Path, *, count: int, most_bytes: int = MOST_BYTES) -> LogRange:
        """Return the last lines."""
        with _opened(log) as file:
            if file is None:
                return LogRange(lines=(), total=0)
            index = self._index_of(log)
            total = index.count(file)
            first = max(1, total - count + 1)
            start, end = index.offset_of(file, first), index.offset_of(file, total + 1)
            data = os.pread(file, min(end - start, most_bytes), max(start, end - most_bytes))
            if end - start > most_bytes:
                data = data[data.find(b"\n") + 1 :]
                first = total - data.count(b"\n") + 1
            return LogRange(lines=_parse(data, first=first), total=total, end=end)

    def find_moment(self, log: Path, at: int) -> int:
        """Return the number of the first line of a moment or after it, else of the last; times grow."""
        low, high = 1, max(1, self.count(log))
        while low < high:
            middle = (low + high) // 2
            if self.read(log, middle, count=1).lines[0].at < at:
                low = middle + 1
            else:
                high = middle
        return low

    def search(
        self,
        log: Path,
        text: str,
        *,
        first: int = 1,
        most: int,
        visible: Callable[[bytes], bytes] = bytes,
    ) -> LogMatches:
        """Return the lines from a number on that have a text, whatever its case in ASCII.

        `visible` takes away what is not seen of the lines, such as colours, but no line end.
        """
        needle = text.encode().lower()
        found: list[LogLine] = []
        count = before = 0
        with _opened(log) as file:
            for lines in () if file is None else _whole_lines(file):
                data = visible(lines) if b"\x1b" in lines else lines
                numbers = list(_matches(data.lower(), needle)) if needle else []
                count += len(numbers)
                wanted = [each for each in numbers if before + each >= first][: most - len(found)]
                if wanted:
                    texts = lines.split(b"\n")
                    found += [_line(texts[each - 1], before + each) for each in wanted]
                before += lines.count(b"\n")
        return LogMatches(lines=tuple(found), count=count, total=before)

    def _index_of(self, log: Path) -> _LineIndex:
        with self._lock:
            index = self._indexes.setdefault(log, _LineIndex())
            self._indexes.move_to_end(log)
            while len(self._indexes) > _MOST_INDEXES:
                self._indexes.popitem(last=False)
            return index


def read_new(log: Path, start: int, *, first: int) -> LogRange:
    """Return whole lines from an offset on, the first of which has this number; `total` is unknown."""
    with _opened(log) as file:
        data = b"" if file is None else os.pread(file, _BLOCK_BYTES, start)
    size = data.rfind(b"\n") + 1
    return LogRange(lines=_parse(data[:size], first=first), total=0, end=start + size)


@contextmanager
def _opened(log: Path) -> Iterator[int | None]:
    try:
        file = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield file
    finally:
        os.close(file)


def _parse(data: bytes, *, first: int) -> tuple[LogLine, ...]:
    parts = data.split(b"\n")
    if not parts[-1]:
        parts.pop()
    return tuple(_line(part, number) for number, part in enumerate(parts, start=first))


def _line(line: bytes, number: int) -> LogLine:
    stamp, _, text = line.partition(b" ")
    # A machine that lost power may leave a broken line.
    at = int(stamp) if stamp.isdigit() and len(stamp) <= _MAX_STAMP else 0
    return LogLine(number=number, at=at, text=text.decode(errors="replace"))


def _whole_lines(file: int) -> Iterator[bytes]:
    """Yield the log piece by piece, each of whole lines."""
    start = 0
    while data := os.pread(file, _SEARCH_BYTES, start):
        size = data.rfind(b"\n") + 1
        if not size:
            return
        start += size
        yield data[:size]


def _matches(data: bytes, needle: bytes) -> Iterator[int]:
    """Yield the numbers of the lines, from 1, that have the needle behind their time."""
    place, line, counted = data.find(needle), 1, 0
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        line += data.count(b"\n", counted, start)
        counted = start
        text = data.find(b" ", start) + 1
        end = data.find(b"\n", place)
        if place >= text or data.find(needle, text, end) >= 0:
            yield line
        place = data.find(needle, end)
