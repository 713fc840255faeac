"""Attempts for tests of runners, one line each."""

import asyncio
import hashlib
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from hublet.core.config.kinds import ImageSource
from hublet.jobs.records import Observation, Phase
from hublet.runtime.records import LaunchOrder, Runner
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.runtime.sandbox.shim_runner import process_runner
from hublet.runtime.shim.system import read
from patience import SOON_SECONDS

# Generous, because the machine is shared; nothing here is a measurement.
MIB = 2**20

HOST = (ImageSource(pattern="*", target="host"),)

_numbers = itertools.count(1)


def a_runner(name: str, data_dir: Path) -> Runner:
    if name == "process":
        return process_runner(data_dir)
    return sandbox_runner(data_dir, image_map=HOST, network=False)


def an_order(data_dir: Path, *argv: str, **changes: Any) -> LaunchOrder:
    """A valid order; name only what the test is about."""
    fresh = hashlib.sha256(f"{data_dir} {next(_numbers)}".encode()).hexdigest()[:24]
    job_id = changes.get("job_id", fresh)
    folder = data_dir / "jobs" / job_id[:2] / job_id
    defaults: dict[str, Any] = {
        "job_id": job_id,
        "number": 1,
        "folder": folder / f"attempt-{changes.get('number', 1)}",
        "log": folder / "log",
        "image": "ubuntu",
        "argv": argv,
        "environment": {},
        "cores": 1.0,
        "memory_bytes": 256 * MIB,
        "timeout_seconds": 60,
        "grace_seconds": 5.0,
        "log_bytes": 64 * MIB,
        "hostname": job_id,
    }
    return LaunchOrder(**(defaults | changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An attempt that was launched, and what it was told."""

    runner: Runner
    order: LaunchOrder
    handle: str
    notes: list[str] = field(default_factory=list)

    async def seen(self) -> Observation:
        return await self.runner.inspect(self.handle)

    async def ended(self) -> Observation:
        deadline = monotonic() + SOON_SECONDS
        while (seen := await self.seen()).phase not in {Phase.exited, Phase.gone}:
            assert monotonic() < deadline, f"It has not ended: {seen}"
            await asyncio.sleep(0.01)
        return seen

    async def prints(self, text: str) -> None:
        deadline = monotonic() + SOON_SECONDS
        while not self.order.log.exists() or text not in self.lines():
            # A cluster tells what is printed to who looks after the attempt.
            seen = await self.seen()
            assert monotonic() < deadline, f"It has not printed {text}: {seen}"
            await asyncio.sleep(0.01)

    def lines(self) -> list[str]:
        """What is in the log, without the time of each line and the line that begins it."""
        return lines_of(self.order.log)


def lines_of(log: Path) -> list[str]:
    stamped = log.read_bytes().decode().split("\n")
    assert stamped.pop() == ""
    texts = [line.partition(" ")[2] for line in stamped]
    return [text for text in texts if not text.startswith("===== Job started at ")]


async def launch(runner: Runner, data_dir: Path, *argv: str, **changes: Any) -> Run:
    order = an_order(data_dir, *argv, **changes)
    return Run(runner=runner, order=order, handle=await runner.launch(order))


async def outcome(
    runner: Runner, data_dir: Path, *argv: str, **changes: Any
) -> tuple[Observation, list[str]]:
    """Run something to its end; return how it ended and what it printed."""
    run = await launch(runner, data_dir, *argv, **changes)
    seen = await run.ended()
    lines = run.lines()
    await runner.remove(run.handle)
    return seen, lines


async def eventually(is_so: Callable[[], bool]) -> None:
    deadline = monotonic() + SOON_SECONDS
    while not is_so():
        assert monotonic() < deadline, "Waited in vain."
        await asyncio.sleep(0.02)


def a_while() -> str:
    """Return a number of seconds that nobody else sleeps."""
    return f"77.{os.getpid()}{next(_numbers)}"


def sleepers(seconds: str) -> list[int]:
    """Return the processes of this machine that sleep so long."""
    wanted = f"sleep\0{seconds}\0".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if read(f"/proc/{pid}/cmdline") == wanted]
