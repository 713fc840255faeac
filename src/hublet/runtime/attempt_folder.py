"""Folder of an attempt: status of its shim, identity of its process, start of its log, long variables."""

import asyncio
import errno
import fcntl
import json
import os
import signal
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.jobs.records import MAX_VARIABLE_BYTES
from hublet.runtime.shim.attempt import STATUS_FILE
from hublet.runtime.shim.system import read, start_time

_START_FILE = "log-start"
_LOCK_FILE = "log-lock"
_RETRY_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process, told apart from a later one with the same pid; start in ticks since the boot."""

    pid: int
    start: int
    boot: str

    def lives(self) -> bool:
        return self.boot == boot_id() and start_time(self.pid) == self.start > 0

    def open(self) -> int | None:
        """Return a pidfd of the process, which is never reused; None: it ended."""
        if not self.lives():
            return None
        try:
            fd = os.pidfd_open(self.pid)
        except OSError:
            return None
        # Checked again: before the pidfd was open the process may have ended and its pid been reused.
        if self.lives():
            return fd
        os.close(fd)
        return None

    def send(self, number: signal.Signals) -> bool:
        if (fd := self.open()) is None:
            return False
        try:
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)
        return True


@cache
def boot_id() -> str:
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def read_status(folder: Path) -> dict[str, Any] | None:
    """Return the status that the shim wrote last; None when there is none that can be read."""
    try:
        status: dict[str, Any] = json.loads(read(str(folder / STATUS_FILE)))
    except ValueError:
        return None
    return status


def identity_of(status: dict[str, Any]) -> ProcessIdentity:
    return ProcessIdentity(pid=status["pid"], start=status["start"], boot=status["boot"])


def spill_long_variables(
    environment: Mapping[str, str], *, home: Path, seen_at: str
) -> dict[str, str]:
    """Return the environment of an attempt without values that are too long for the kernel.

    A NAME with such a value becomes NAME_FILE, the path of a file with the value in `home`, which
    the attempt sees at `seen_at`. Blocks.
    """
    fitting = dict[str, str]()
    for name, value in environment.items():
        if len(f"{name}={value}".encode()) <= MAX_VARIABLE_BYTES:
            fitting[name] = value
            continue
        home.mkdir(mode=0o700, exist_ok=True)
        (home / f".{name}").write_text(value, encoding="utf-8")
        fitting[f"{name}_FILE"] = f"{seen_at}/.{name}"
    return fitting


def note_log_start(folder: Path, log: Path) -> None:
    """Note where in the log an attempt begins; later calls change nothing."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log.parent.mkdir(parents=True, exist_ok=True)
    if not (folder / _START_FILE).exists():
        size = log.stat().st_size if log.exists() else 0
        (folder / f"{_START_FILE}.new").write_text(str(size))
        (folder / f"{_START_FILE}.new").rename(folder / _START_FILE)


def read_log_start(folder: Path) -> int:
    """Return where in the log an attempt begins, as it was noted. Blocks."""
    return int((folder / _START_FILE).read_text())


def check_linked(log: int) -> None:
    """Raise OSError where another file has taken the place of an open log.

    It was made anew from the shared store, because a worker with another data folder went on with it.
    """
    if not os.fstat(log).st_nlink:
        raise OSError(errno.ESTALE, "The log of the attempt was made anew")


async def lock_log(folder: Path) -> int:
    """Wait for the lock that keeps other followers out, here or in another process; return its file."""
    descriptor = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
