"""Log follower: the log of a pod becomes the log of its job, every line once, gaps told.

A cluster keeps a log only as long as it likes (rotation, deletion), so it is followed from the
start. Each line has the time of the cluster; after a break the follower asks for what came since
the last line, drops what it has, and says so when that line is not there any more. A node that is
slower than the job skips what it has rotated twice since, and does not tell: the times do. So they do
when nothing is known and the first line comes late: what was before it may be rotated away.
"""

import asyncio
import calendar
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

from hublet.core import clock
from hublet.core.clock import to_micros
from hublet.runtime.attempt_folder import (
    check_linked,
    lock_log,
    note_log_start,
    read_log_start,
)
from hublet.runtime.shim.log import PIECE, Log, cut, in_pieces

# The time of a line has up to nine digits after the point.
_STAMPED = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z (.*)", re.DOTALL
)
_GAP = b"===== Lines may be missing here: the cluster did not keep them ====="
_STARTED = "===== Job started at {} ====="
_NOTICE = re.compile(
    rb"===== (?:Job started at \S+|Lines may be missing here: .*|The cluster .*) ====="
)
_SECOND = 1_000_000
_PAUSE_SECONDS = 0.2
# A node rotates a log at most every three seconds, so no file that it skips is shorter.
_SKIPPED = 2_500_000

StampedLine = tuple[int, bytes]


class LogSource(Protocol):
    """Opens the log of a pod, each line with its time in front."""

    def __call__(
        self, *, since: str | None, is_followed: bool
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


def parse_line(line: bytes) -> StampedLine | None:
    """Return the time of a line in microseconds, and its text; None: the cluster itself speaks."""
    match = _STAMPED.fullmatch(line)
    if match is None:
        return None
    *parts, fraction, text = match.groups()
    second = calendar.timegm(tuple(map(int, parts)))
    return second * _SECOND + int((fraction or b"").ljust(6, b"0")[:6]), text


class LogMerger:
    """Merges what a cluster tells again with what is known: the last time, and lines of that time.

    Or, before any line, when the job started.
    """

    def __init__(
        self, *, last: int | None = None, count: int = 0, started: int | None = None
    ) -> None:
        self.last, self.count, self._started = last, count, started
        self.reconnect()

    def reconnect(self) -> None:
        """Expect the lines since the last one once more."""
        self._to_skip = self.count
        self._is_expecting = self.last is not None
        # When the last line came, and how late the one that came soonest: clocks differ.
        self._arrived, self._least_lag = 0, sys.maxsize

    @property
    def since(self) -> str | None:
        """Return the time to ask for; a whole second, because clusters disagree on fractions."""
        if self.last is None:
            return None
        return f"{clock.from_micros(self.last):%Y-%m-%dT%H:%M:%SZ}"

    def merge(self, line: bytes, *, arrived: int) -> Iterator[StampedLine]:
        """Yield what is new in a line that arrived at a time: nothing, the line in pieces, or a gap before it."""
        parsed = parse_line(line)
        if parsed is None:
            yield from self._quote(line)
            return
        stamp, text = parsed
        if self._is_expecting and stamp < (self.last or 0):
            return
        if self._is_expecting and stamp > (self.last or 0):
            yield from self.finish()
            self._is_expecting = False
        elif self.last is not None and self._has_skipped(stamp - self.last, arrived):
            yield self.last, _GAP
        elif self.last is None and self._began_late(stamp, arrived):
            yield self._started or 0, _GAP
        self._arrived, self._least_lag = arrived, min(arrived - stamp, self._least_lag)
        for piece in in_pieces(text.removesuffix(b"\r")).split(b"\n"):
            if self._is_expecting and self._to_skip:
                self._to_skip -= 1
            else:
                yield self._note(stamp), piece

    def _has_skipped(self, pause: int, arrived: int) -> bool:
        """Tell whether a node that was late goes on after a pause of the job that it has not waited for.

        What a job printed before this connection is told late, too, but its first line the latest.
        """
        lag = self._arrived - (self.last or 0)
        is_late = lag - self._least_lag > _SKIPPED
        return is_late and pause > _SKIPPED and arrived - self._arrived < _SKIPPED

    def _began_late(self, stamp: int, arrived: int) -> bool:
        """Tell whether the first line is neither from the start of the job nor just printed."""
        begun = self._started
        return begun is not None and min(stamp - begun, arrived - stamp) > _SKIPPED

    def _quote(self, line: bytes) -> Iterator[StampedLine]:
        """Yield what the cluster says of itself in the middle of a log."""
        if said := line.decode("utf-8", "replace").strip():
            yield self.last or 0, f"===== The cluster says: {said} =====".encode()

    def finish(self) -> Iterator[StampedLine]:
        """Yield a gap if the cluster has forgotten even the last line that is known."""
        if self._is_expecting and self.last is not None and self._to_skip == self.count:
            yield self.last, _GAP

    def _note(self, stamp: int) -> int:
        if self.last is None or stamp > self.last:
            self.last, self.count = stamp, 0
        self.count += 1
        return self.last


class _PodLog(Log):
    """Log whose lines have the times of the cluster."""

    def __init__(self, path: Path, *, limit: int, start: int, started: datetime) -> None:
        super().__init__(str(path), limit=limit, offset=clock.offset() // timedelta(microseconds=1))
        last, count = _last_line(path, start)
        known = None if last is None else last - self.offset
        begun = to_micros(started)
        self.merger = LogMerger(last=known if count else None, count=count, started=begun)
        if last is None:
            text = _STARTED.format(clock.wire(started + clock.offset()))
            self._write([(begun, text.encode())])

    def add(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        # A line that does not end is not kept in memory until it does.
        while len(self.rest) > PIECE and (parts := _cut_stamped(self.rest)) is not None:
            lines.append(parts[0])
            self.rest = parts[1]
        now = _node_time()
        self._write([new for line in lines for new in self.merger.merge(line, arrived=now)])

    def reconnect(self) -> None:
        check_linked(self.fd)
        # An incomplete line is told again.
        self.rest = b""
        self.merger.reconnect()

    def close(self) -> None:
        rest = [*self.merger.merge(self.rest, arrived=_node_time())] if self.rest else []
        self._write([*rest, *self.merger.finish()])
        self.rest = b""

    def _write(self, lines: list[StampedLine]) -> None:
        check_linked(self.fd)
        if self.full or not lines:
            return
        self.stamp = lines[-1][0] + self.offset
        data = b"".join(b"%d %s\n" % (stamp + self.offset, text) for stamp, text in lines)
        if not data.isascii():
            data = data.decode("utf-8", "replace").encode()
        self.append(data)


def _node_time() -> int:
    """Return the time in microseconds as a node would tell it: no test moves its clock."""
    return to_micros(clock.now() - clock.offset())


def _cut_stamped(line: bytes) -> tuple[bytes, bytes] | None:
    """Return the first piece of a line and what follows, each with its time; None: it is one piece."""
    stamp, _, text = line.partition(b" ")
    if len(text) <= PIECE:
        return None
    piece, rest = cut(text)
    return stamp + b" " + piece, stamp + b" " + rest


def _last_line(path: Path, start: int) -> tuple[int | None, int]:
    """Return the time of the last line after an offset, and how many the job printed at it."""
    last, count = None, 0
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            digits, _, text = line.rstrip(b"\n").partition(b" ")
            if not digits.isdigit():
                continue
            if last is None or int(digits) > last:
                last, count = int(digits), 0
            count += _NOTICE.fullmatch(text) is None
    return last, count


async def follow(
    source: LogSource,
    *,
    folder: Path,
    log: Path,
    limit: int,
    started: datetime,
    is_over: Callable[[], Awaitable[bool]],
) -> None:
    """Write the log of a pod into that of its job until all of it is there.

    A lock keeps other followers out, in this process or another. `is_over` tells whether the job
    has ended: only what is read after that is known to be complete.
    """
    await asyncio.to_thread(note_log_start, folder, log)
    lock = await lock_log(folder)
    try:
        start = await asyncio.to_thread(read_log_start, folder)
        written = await asyncio.to_thread(
            lambda: _PodLog(log, limit=limit, start=start, started=started.astimezone(UTC))
        )
        try:
            await _follow(source, written, is_over)
        finally:
            os.close(written.fd)
    finally:
        os.close(lock)


async def _follow(
    source: LogSource, written: _PodLog, is_over: Callable[[], Awaitable[bool]]
) -> None:
    while True:
        has_ended = await is_over()
        async with source(since=written.merger.since, is_followed=not has_ended) as pieces:
            async for data in pieces:
                await asyncio.to_thread(written.add, data)
        if has_ended:
            await asyncio.to_thread(written.close)
            return
        written.reconnect()
        await asyncio.sleep(_PAUSE_SECONDS)
