"""Source of a log: a file of this machine, or objects of the shared store, read by offset alike.

A log in the store is one of attempts, one after the other; each is a row of chunks, whose names are
where they begin and end. The attempt that runs may be read from the file that it is shipped from, if
that is here: it has the same bytes, and is ahead. Here chunks are also made of such a file, and a file
of chunks. All of it blocks: call it in a thread.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.jobs.records import LogPart
from hublet.storage.object_store import ObjectKey, ObjectStore

# The lines of a log in the store are counted for each block of it.
BLOCK_BYTES = 256 * 1024
CHUNK_BYTES = 1024 * 1024
# Chunks are put together when so many of them are smaller than half a full one.
_MOST_SMALL = 64
# Of a log that grows fast, so many chunks before it is said that they are there.
_CHUNKS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLog:
    """A log in the shared store, as far as it was there at a moment."""

    store: ObjectStore
    # Where this machine has the files of its attempts.
    folder: Path
    parts: tuple[LogPart, ...] = ()

    @property
    def usage_key(self) -> ObjectKey | None:
        """The object with the kept usage of the job, if there is one."""
        names = [part.usage for part in self.parts if part.usage is not None]
        return ObjectKey("logs", names[-1]) if names else None


JobLog = Path | StoredLog


class OpenLog(Protocol):
    """A log that is read."""

    @property
    def size(self) -> int: ...

    @property
    def checkpoints(self) -> Sequence[tuple[int, int]]:
        """Offsets, and how many lines end before each, as far as that is known already."""
        ...

    def read(self, count: int, start: int) -> bytes:
        """Return so many bytes from an offset on; fewer at the end."""
        ...


def local_log(folder: Path, attempt: int) -> Path:
    """Return the file of an attempt whose log is shipped to the shared store."""
    return folder / f"log-{attempt}"


def chunk_key(part: LogPart, start: int, end: int) -> ObjectKey:
    return ObjectKey("logs", f"{part.job_id}/{part.attempt}/{start}-{end}")


def chunk_keys(part: LogPart) -> list[ObjectKey]:
    starts = (0, *part.ends[:-1])
    return [chunk_key(part, *each) for each in zip(starts, part.ends, strict=True)]


@contextmanager
def open_log(log: JobLog) -> Iterator[OpenLog | None]:
    """Open a log; None: the file does not exist."""
    with ExitStack() as stack:
        if isinstance(log, StoredLog):
            yield _OpenStoredLog(log, stack)
        else:
            yield _open_file(log, stack)


def size_of(log: JobLog) -> int:
    with open_log(log) as opened:
        return 0 if opened is None else opened.size


def _open_file(path: Path, stack: ExitStack) -> "_OpenFile | None":
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    stack.callback(os.close, file)
    return _OpenFile(file)


class _OpenFile(OpenLog):
    def __init__(self, file: int) -> None:
        self._file = file

    @property
    def checkpoints(self) -> Sequence[tuple[int, int]]:
        return ()

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, count: int, start: int) -> bytes:
        return os.pread(self._file, count, start)


class _OpenPart:
    """The log of one attempt among those of its job, and the line that follows it."""

    def __init__(self, part: LogPart, file: _OpenFile | None, store: ObjectStore) -> None:
        self._part = part
        self._store = store
        self._notice = f"{part.ended_at} {part.notice}\n".encode() if part.notice else b""
        self._file = file if file is not None and file.size >= part.size else None
        self.size = part.size if self._file is None else self._file.size
        self.size += len(self._notice)

    def checkpoints(self) -> Iterator[tuple[int, int]]:
        part = self._part
        for number, lines in enumerate(part.block_lines, start=1):
            yield number * BLOCK_BYTES, lines
        yield part.size, part.lines
        if self._notice:
            yield self.size, part.lines + 1

    def read(self, start: int, end: int) -> bytes:
        if self._file is not None:
            return self._file.read(end - start, start)
        size = self._part.size
        data = self._read_chunks(start, min(end, size)) if start < size else b""
        return data + self._notice[max(0, start - size) : max(0, end - size)]

    def _read_chunks(self, start: int, end: int) -> bytes:
        ends, pieces = self._part.ends, list[bytes]()
        # What is not there was deleted with its job.
        with suppress(FileNotFoundError, EOFError):
            while start < end:
                chunk = bisect_right(ends, start)
                first, last = (0, *ends)[chunk], ends[chunk]
                stop = min(end, last)
                key = chunk_key(self._part, first, last)
                pieces += self._store.pieces(key, start - first, stop - first)
                start = stop
        return b"".join(pieces)


class _OpenStoredLog(OpenLog):
    def __init__(self, log: StoredLog, stack: ExitStack) -> None:
        self._parts: list[tuple[int, _OpenPart]] = []
        self._size = 0
        for part in log.parts:
            # A file of what has ended may have more than what counts.
            file = None
            if part.ended_at is None:
                file = _open_file(local_log(log.folder, part.attempt), stack)
            opened = _OpenPart(part, file, log.store)
            self._parts.append((self._size, opened))
            self._size += opened.size

    @property
    def size(self) -> int:
        return self._size

    @property
    def checkpoints(self) -> Sequence[tuple[int, int]]:
        found, lines = list[tuple[int, int]](), 0
        for base, part in self._parts:
            found += [(base + offset, lines + count) for offset, count in part.checkpoints()]
            lines = found[-1][1]
        return found

    def read(self, count: int, start: int) -> bytes:
        end, pieces = min(self._size, start + count), list[bytes]()
        for base, part in self._parts:
            first, last = max(start, base), min(end, base + part.size)
            if first < last:
                pieces.append(part.read(first - base, last - base))
        return b"".join(pieces)


def put_new(objects: ObjectStore, part: LogPart, path: Path, *, is_over: bool = False) -> LogPart:
    """Put the lines that a log has grown by, and return how far it is in the store then.

    The last line of a job that is over gets its end if it lacks it.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return part
    try:
        most = len(part.ends) + _CHUNKS_AT_ONCE
        while is_over or len(part.ends) < most:
            data = _whole_lines(os.pread(file, CHUNK_BYTES, part.size), is_over=is_over)
            if not data:
                break
            end = part.size + len(data)
            objects.put_bytes(chunk_key(part, part.size, end), data)
            part = _grown(part, data)
        return _put_together(objects, part, file, is_over=is_over)
    finally:
        os.close(file)


def _whole_lines(data: bytes, *, is_over: bool) -> bytes:
    size = data.rfind(b"\n") + 1
    if not size and data and is_over:
        return data + b"\n"
    return data[:size]


def _grown(part: LogPart, data: bytes) -> LogPart:
    end, blocks = part.size + len(data), list(part.block_lines)
    lines, counted = part.lines, 0
    while (len(blocks) + 1) * BLOCK_BYTES <= end:
        border = (len(blocks) + 1) * BLOCK_BYTES - part.size
        lines += data.count(b"\n", counted, border)
        blocks.append(lines)
        counted = border
    lines += data.count(b"\n", counted)
    return replace(part, size=end, lines=lines, ends=(*part.ends, end), block_lines=tuple(blocks))


def _put_together(objects: ObjectStore, part: LogPart, file: int, *, is_over: bool) -> LogPart:
    """Make one chunk of small ones at the end, when they are many or enough for a full one."""
    first = _first_small(part.ends)
    start = part.ends[first - 1] if first else 0
    count, size = len(part.ends) - first, part.size - start
    if count < (2 if is_over else _MOST_SMALL) and (size < CHUNK_BYTES or count < 2):  # noqa: PLR2004 - one is whole
        return part
    data = os.pread(file, size, start)
    # The end of the last line may be ours.
    objects.put_bytes(chunk_key(part, start, part.size), data.ljust(size, b"\n"))
    return replace(part, ends=(*part.ends[:first], part.size))


def _first_small(ends: tuple[int, ...]) -> int:
    """Return the number of the first of the small chunks at the end."""
    first = len(ends)
    while first and ends[first - 1] - (ends[first - 2] if first > 1 else 0) < CHUNK_BYTES // 2:
        first -= 1
    return first


def goes_on(objects: ObjectStore, part: LogPart, path: Path) -> bool:
    """Tell whether a file has what the last chunk has: another follower may have seen a gap, or none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        last = objects.read(chunk_keys(part)[-1])
        return os.pread(file, len(last), part.size - len(last)) == last
    finally:
        os.close(file)


def make_file(objects: ObjectStore, part: LogPart, path: Path) -> None:
    """Make a file of the chunks of a log, in the place of what has its name."""
    new = path.with_name(f"{path.name}.{new_object_id()}")
    try:
        with new.open("xb") as file:
            file.writelines(map(objects.read, chunk_keys(part)))
        new.rename(path)
    finally:
        new.unlink(missing_ok=True)
