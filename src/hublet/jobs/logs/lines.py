"""Lines of a log by their numbers: how many there are, ranges of them, and a search in all of them.

A log may have a million lines and is never read whole into memory: an index has the number of lines
before each block, and grows with it; that of a log in the shared store lies with it. All of it blocks:
call it in a thread.
"""

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.jobs.logs.source import BLOCK_BYTES, JobLog, OpenLog, open_log

_BLOCK_BYTES = BLOCK_BYTES
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
    """The number of line ends before each of some offsets of a log, a block apart at most."""

    def __init__(self) -> None:
        self._offsets = [0]
        self._counts = [0]
        self._lock = threading.Lock()

    def count(self, log: OpenLog) -> int:
        """Return the number of whole lines, after a look at what has been written since."""
        size = log.size
        with self._lock:
            if size < self._offsets[-1]:
                self._offsets, self._counts = [0], [0]
            if len(self._offsets) == 1:
                for offset, lines in log.checkpoints:
                    self._append(offset, lines)
            while self._offsets[-1] + _BLOCK_BYTES <= size:
                start = self._offsets[-1]
                lines = log.read(_BLOCK_BYTES, start).count(b"\n")
                self._append(start + _BLOCK_BYTES, self._counts[-1] + lines)
            return self._counts[-1] + log.read(_BLOCK_BYTES, self._offsets[-1]).count(b"\n")

    def _append(self, offset: int, lines: int) -> None:
        self._offsets.append(offset)
        self._counts.append(lines)

    def offset_of(self, log: OpenLog, number: int) -> int:
        """Return the offset of a line, which is the end of the one before it."""
        ends = number - 1
        if ends <= 0:
            return 0
        with self._lock:
            block = bisect_left(self._counts, ends) - 1
            missing, start = ends - self._counts[block], self._offsets[block]
        data, place = log.read(_BLOCK_BYTES, start), -1
        for _ in range(missing):
            place = data.find(b"\n", place + 1)
        return start + place + 1


@dataclass(slots=True)
class LogLines:
    """Reads lines of logs, and remembers the indexes of those that were read last."""

    _indexes: OrderedDict[Path, _LineIndex] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, log: JobLog) -> int:
        """Return the number of whole lines; a log that does not exist has none."""
        with open_log(log) as file:
            return 0 if file is None else self._index_of(log).count(file)

    def read(
        self, log: JobLog, first: int, *, count: int, most_bytes: int = MOST_BYTES
    ) -> LogRange:
        """Return lines from a number on; fewer where the log ends or they are very long."""
        with open_log(log) as file:
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
            data = file.read(min(end - start, most_bytes), start)
            # What is cut has no end, and at least one line is returned.
            size = data.rfind(b"\n") + 1 or len(data)
            return LogRange(lines=_parse(data[:size], first=first), total=total, end=start + size)

    def read_tail(self, log: JobLog, *, count: int, most_bytes: int = MOST_BYTES) -> LogRange:
        """Return the last lines."""
        with open_log(log) as file:
            if file is None:
                return LogRange(lines=(), total=0)
            index = self._index_of(log)
            total = index.count(file)
            first = max(1, total - count + 1)
            start, end = index.offset_of(file, first), index.offset_of(file, total + 1)
            data = file.read(min(end - start, most_bytes), max(start, end - most_bytes))
            if end - start > most_bytes:
                data = data[data.find(b"\n") + 1 :]
                first = total - data.count(b"\n") + 1
            return LogRange(lines=_parse(data, first=first), total=total, end=end)

    def find_moment(self, log: JobLog, at: int) -> int:
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
        log: JobLog,
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
        with open_log(log) as file:
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

    def _index_of(self, log: JobLog) -> _LineIndex:
        if not isinstance(log, Path):
            # It has one of its own.
            return _LineIndex()
        with self._lock:
            index = self._indexes.setdefault(log, _LineIndex())
            self._indexes.move_to_end(log)
            while len(self._indexes) > _MOST_INDEXES:
                self._indexes.popitem(last=False)
            return index


def read_new(log: JobLog, start: int, *, first: int) -> LogRange:
    """Return whole lines from an offset on, the first of which has this number; `total` is unknown."""
    with open_log(log) as file:
        data = b"" if file is None else file.read(_BLOCK_BYTES, start)
    size = data.rfind(b"\n") + 1
    return LogRange(lines=_parse(data[:size], first=first), total=0, end=start + size)


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


def _whole_lines(file: OpenLog) -> Iterator[bytes]:
    """Yield the log piece by piece, each of whole lines."""
    start = 0
    while data := file.read(_SEARCH_BYTES, start):
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
