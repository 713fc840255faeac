"""Forked processes that are killed at one step of the code that is watched."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from types import FrameType
from typing import Any


class StepKiller:
    """Counts the steps of the code that is watched, and ends the process without notice at one."""

    def __init__(self, watched: Sequence[str], at: int | None) -> None:
        self.steps = 0
        self._watched = watched
        self._at = at

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> None:
        if any(part in frame.f_code.co_filename for part in self._watched):
            self.steps += 1
            if self.steps == self._at:
                os.kill(os.getpid(), signal.SIGKILL)

    def start(self) -> None:
        threading.setprofile(self)
        sys.setprofile(self)


def run_killed(
    work: Callable[[StepKiller], Awaitable[None]], *, watched: Sequence[str], at: int | None
) -> tuple[bool, int]:
    """Run in a forked process what starts the killer; return whether it was killed, else its steps.

    `watched` are parts of the names of source files.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        _work(work, StepKiller(watched, at), writing)
    os.close(writing)
    _, status = os.waitpid(process, 0)
    with os.fdopen(reading) as steps:
        text = steps.read()
    if not os.WIFSIGNALED(status) and os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit("A process failed that was to be killed, or to come to its end.")
    return os.WIFSIGNALED(status), int(text or 0)


def _work(work: Callable[[StepKiller], Awaitable[None]], killer: StepKiller, told: int) -> None:
    async def run() -> None:
        await work(killer)

    asyncio.run(run())
    sys.setprofile(None)
    os.write(told, str(killer.steps).encode())
    os._exit(0)
