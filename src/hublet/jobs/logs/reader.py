"""Reader of a log: pieces as server-sent events. All of it blocks: call it in a thread."""

from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from pathlib import Path

from hublet.core.clock import wire
from hublet.core.dataclasses import dataclass
from hublet.jobs.logs.source import JobLog, OpenLog, open_log, size_of

_SECOND = 1_000_000
# Until the year 2286.
_MAX_STAMP = 16
# As events it is up to four times as long.
PIECE_BYTES = 64 * 1024
# Each costs a request to the store.
_STORED_PIECE_BYTES = 256 * 1024
# A line has 64 KiB, and each byte that is not UTF-8 takes three.
_MAX_LINE_BYTES = 256 * 1024


def job_folder(data_dir: Path, job_id: str) -> Path:
    return data_dir / "jobs" / job_id[:2] / job_id


def log_path(data_dir: Path, job_id: str) -> Path:
    return job_folder(data_dir, job_id) / "log"


def events_of(lines: bytes) -> str:
    """Return one server-sent event for each line; the last newline ends a line, it begins none."""
    parts = lines.split(b"\n")
    if not parts[-1]:
        parts.pop()
    return "".join(map(_event, parts))


def _event(line: bytes) -> str:
    stamp, _, text = line.partition(b" ")
    # Only ASCII: Unicode has more line ends than JSON, and the public client takes each of them
    # as the end of an event.
    data = encode_basestring_ascii(text.decode(errors="replace"))
    return f'data: {{"data":{data},"timestamp":"{_time(stamp)}"}}\n\n'


def _time(stamp: bytes) -> str:
    """Write a time to the microsecond: a client that comes back finds its line by text and time."""
    # A machine that lost power may leave a broken line; it must not hide those after it.
    moment = int(stamp) if stamp.isdigit() and len(stamp) <= _MAX_STAMP else 0
    second, fraction = divmod(moment, _SECOND)
    return f"{_until_second(second)}.{fraction:06d}Z"


@lru_cache(maxsize=64)
def _until_second(second: int) -> str:
    return wire(second * _SECOND).removesuffix(".000Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Some lines as events, and the offset of the line after them."""

    events: str
    end: int


def read_piece(log: JobLog, start: int, *, is_over: bool) -> LogPiece:
    """Read whole lines from the offset of one; none at the end of the log, or without a log.

    The last line may lack its end: it is being written, or the job ended in the middle of it.
    """
    with open_log(log) as opened:
        data = b"" if opened is None else _read(opened, start, _piece_bytes(log))
    size = data.rfind(b"\n") + 1 or (len(data) if is_over else 0)
    return LogPiece(events=events_of(data[:size]), end=start + size)


def _piece_bytes(log: JobLog) -> int:
    return PIECE_BYTES if isinstance(log, Path) else _STORED_PIECE_BYTES


def _read(log: OpenLog, start: int, count: int) -> bytes:
    data = log.read(count, start)
    return data if b"\n" in data else log.read(_MAX_LINE_BYTES, start)


def find_tail(log: JobLog, lines: int) -> int:
    """Return the offset of the last lines, reading from the end."""
    with open_log(log) as opened:
        return 0 if opened is None else _find_tail(opened, lines, _piece_bytes(log))


def _find_tail(log: OpenLog, lines: int, count: int) -> int:
    end = log.size
    # A line without its end is not sent yet, so it does not count.
    missing = lines + 1
    while end > 0:
        start = max(0, end - count)
        data = log.read(end - start, start)
        ends = data.count(b"\n")
        if ends >= missing:
            return start + _nth_from_end(data, missing) + 1
        missing -= ends
        end = start
    return 0


def _nth_from_end(data: bytes, count: int) -> int:
    place = len(data)
    for _ in range(count):
        place = data.rfind(b"\n", 0, place)
    return place


def sizes_of(logs: Iterable[JobLog]) -> list[int]:
    """Return the size of each log; one that does not exist yet has size 0."""
    return [size_of(log) for log in logs]
