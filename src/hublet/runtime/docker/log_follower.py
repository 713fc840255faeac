"""Log follower: the output of a container becomes the log of its job, every line once."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

from hublet.core import clock
from hublet.runtime.attempt_folder import (
    check_linked,
    lock_log,
    note_log_start,
    read_log_start,
)
from hublet.runtime.shim.log import PIECE, Log, in_pieces


class _ResumedLog(Log):
    """Log that skips the lines it already has."""

    def __init__(self, path: Path, *, limit: int, start: int) -> None:
        super().__init__(str(path), limit=limit, offset=clock.offset() // timedelta(microseconds=1))
        with path.open("rb") as file:
            file.seek(start)
            self.written_lines = sum(
                piece.count(b"\n") for piece in iter(lambda: file.read(PIECE), b"")
            )

    def add(self, data: bytes) -> None:
        check_linked(self.fd)
        super().add(data)

    def close(self) -> None:
        check_linked(self.fd)
        super().close()

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
    await asyncio.to_thread(note_log_start, folder, log)
    lock = await lock_log(folder)
    try:
        start = await asyncio.to_thread(read_log_start, folder)
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
