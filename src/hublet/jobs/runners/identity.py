"""Which process a status speaks of: a number alone may by now be somebody else's."""

import json
import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.runners.shim.system import read, start_time

STATUS, STOP = "status.json", "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A process of this boot of the machine; start in ticks since the boot."""

    pid: int
    start: int
    boot: str

    def lives(self) -> bool:
        return self.boot == boot_id() and start_time(self.pid) == self.start > 0

    def open(self) -> int | None:
        """Return a file descriptor of the process, which cannot become another's; None: it ended."""
        if not self.lives():
            return None
        try:
            fd = os.pidfd_open(self.pid)
        except OSError:
            return None
        # Looked at again: it may have ended, and another begun, before the descriptor was there.
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


def status_of(folder: Path) -> dict[str, Any] | None:
    """Return what the shim last said; None when it has said nothing, or nothing that was kept."""
    try:
        status: dict[str, Any] = json.loads(read(str(folder / STATUS)))
    except ValueError:
        return None
    return status


def identity_of(status: dict[str, Any]) -> Identity:
    return Identity(pid=status["pid"], start=status["start"], boot=status["boot"])
