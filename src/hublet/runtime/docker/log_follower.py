"""Log follower: the output of a container becomes the log of its job, every line once."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

from hublet.core import clock
from hublet.runtime.shim.log import PIECE, Log, in_pieces

_START_FILE = "log-start"
_LOCK_FILE = "log-lock"
_RETRY_SECONDS = 0.5


def note_start(folder: Path, log: Path) -> None:
    """Note where in the log an attempt begins; later calls change nothing."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log.parent.mkdir(parents=True, exist_ok=True)
    if not (folder / _START_FILE).exists():
        size = log.stat().st_size if log.exists() else 0
        (folder / f"{_START_FILE}.new").write_text(str(size))
        (folder / f"{_START_FILE}.new").rename(folder / _START_FILE)


class _ResumedLog(Log):
    """Log that skips the lines it already has."""

    def __init__(self, path: Path, *, limit: int, start: int) -> None:
        super().__init__(str(path), limit=limit, offset=clock.offset() // timedelta(microseconds=1))
        with path.open("rb") as file:
            file.seek(start)
            self.written_lines = sum(
                piece.count(b"\n") for piece in iter(lambda: file.read(PIECE), b"")
            )

    def lines(self, data: bytes) -> None:
        if self.written_lines:
            *complete, _ = b"\n".join(map(in_pieces, data.split(b"\n"))).split(b"\n")
            new = complete[self.written_lines :]
            self.written_lines = max(self.written_lines - len(complete), 0)
            data = b"".join(line + b"\n" for line in new)
        if data:
            super().lines(data)


async def follow(
    output: AsyncIterator[bytes], *, folder: Path, log: Path, limit: int, started: str
) -> None:
    """Write the output of an attempt into its log; `output` always starts at its first byte.

    A lock keeps other followers out, in this process or another; when they get it, all lines
    are there.
    """
    lock = await _acquire_lock(folder / _LOCK_FILE)
    try:
        start = int(await asyncio.to_thread((folder / _START_FILE).read_text))
        written = await asyncio.to_thread(_ResumedLog, log, limit=limit, start=start)
        try:
            written.add(f"===== Job started at {started} =====\n".encode())
            async for data in output:
                await asyncio.to_thread(written.add, data)
            written.close()
        finally:
            os.close(written.fd)
    finally:
        os.close(lock)


async def _acquire_lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
