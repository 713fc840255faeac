"""Reader of a log file: pieces as server-sent events. All of it blocks: call it in a thread."""

import os
from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from pathlib import Path

from hublet.core.clock import wire
from hublet.core.light_dataclasses import dataclass

_SECOND = 1_000_000
# Until the year 2286.
_MAX_STAMP = 16


def events_of(lines: bytes) -> str:
    """Return one server-sent event for each line; the last newline ends a line, it begins none."""
    found = lines.split(b"\n")
    if not found[-1]:
        found.pop()
    return "".join(map(_event, found))


def _event(line: bytes) -> str:
    stamp, _, text = line.partition(b" ")
    # Only ASCII: there are more ends of a line in Unicode than in JSON, and the public client
    # takes each of them as the end of an event.
    data = encode_basestring_ascii(text.decode(errors="replace"))
    return f'data: {{"data":{data},"timestamp":"{_time(stamp)}"}}\n\n'


def _time(stamp: bytes) -> str:
    """Write a time to the microsecond: the client finds its place again by text and time."""
    # A machine that lost power may leave a broken line; it must not hide those after it.
    moment = int(stamp) if stamp.isdigit() and len(stamp) <= _MAX_STAMP else 0
    second, fraction = divmod(moment, _SECOND)
    return f"{_until_second(second)}.{fraction:06d}Z"


@lru_cache(maxsize=64)
def _until_second(second: int) -> str:
    return wire(second * _SECOND).removesuffix(".000Z")


# As events it is up to four times as long.
PIECE_BYTES = 64 * 1024
# A line has 64 KiB, and each byte that is not UTF-8 takes three.
_MAX_LINE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Some lines as events, and where the line after them begins."""

    events: str
    end: int


def job_folder(data_dir: Path, job_id: str) -> Path:
    return data_dir / "jobs" / job_id[:2] / job_id


def log_path(data_dir: Path, job_id: str) -> Path:
    return job_folder(data_dir, job_id) / "log"


def read_piece(log: Path, start: int, *, is_over: bool) -> LogPiece:
    """Read whole lines from where one begins; nothing at the end of the log, or without one.

    The last line may lack its end: somebody is just writing it, or nobody ever will.
    """
    try:
        with log.open("rb") as file:
            found = _read(file.fileno(), start)
    except FileNotFoundError:
        found = b""
    size = found.rfind(b"\n") + 1 or (len(found) if is_over else 0)
    return LogPiece(events=events_of(found[:size]), end=start + size)


def _read(file: int, start: int) -> bytes:
    found = os.pread(file, PIECE_BYTES, start)
    return found if b"\n" in found else os.pread(file, _MAX_LINE_BYTES, start)


def find_tail(log: Path, lines: int) -> int:
    """Return where the last lines begin, looking from the end."""
    try:
        with log.open("rb") as file:
            return _find_tail(file.fileno(), lines)
    except FileNotFoundError:
        return 0


def _find_tail(file: int, lines: int) -> int:
    end = os.fstat(file).st_size
    # What was written half only is not told yet, so it does not count.
    missing = lines + 1
    while end > 0:
        start = max(0, end - PIECE_BYTES)
        found = os.pread(file, end - start, start)
        ends = found.count(b"\n")
        if ends >= missing:
            return start + _nth_from_end(found, missing) + 1
        missing -= ends
        end = start
    return 0


def _nth_from_end(found: bytes, count: int) -> int:
    place = len(found)
    for _ in range(count):
        place = found.rfind(b"\n", 0, place)
    return place


def sizes_of(logs: Iterable[Path]) -> list[int]:
    """Return how long each log is now; one that does not exist yet has no length."""
    return [_size(log) for log in logs]


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0
