"""A runner that runs nothing: the test decides what each attempt does."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hublet.core.clock import now
from hublet.jobs.records import Observation, Phase, Usage
from hublet.runtime.records import AttachPoint, LaunchOrder, RunnerCapabilities

Key = tuple[str, int]


@dataclass(slots=True)
class Scripted:
    """One attempt as the runner has it."""

    order: LaunchOrder
    seen: Observation
    # How often it was asked to end.
    stops: int = 0


@dataclass(slots=True)
class ScriptedRunner:
    name: str = "scripted"
    is_local: bool = True
    attempts: dict[Key, Scripted] = field(default_factory=dict)
    # How often each attempt was ordered, and how often that began one.
    orders: Counter[Key] = field(default_factory=Counter)
    begun: Counter[Key] = field(default_factory=Counter)
    removed: list[str] = field(default_factory=list)
    tidied: int = 0
    # Raised by the next launches, as long as it is set.
    refusal: Exception | None = None
    # Raised by every other call.
    failure: Exception | None = None
    # What only a set event lets go on.
    launch_gate: asyncio.Event | None = None
    answer_gate: asyncio.Event | None = None
    # How each attempt is seen as soon as it is launched.
    at_launch: Observation = field(default_factory=lambda: Observation(phase=Phase.pending))
    # Whether a polite request to end is enough.
    obeys: bool = True
    cannot_remove: bool = False
    # What the attempts of a job use, by its id, or why that cannot be told.
    usages: dict[str, Usage | Exception | None] = field(default_factory=dict)
    hints: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def probe(self) -> RunnerCapabilities:
        return RunnerCapabilities(usable=True, sentence="Scripted.")

    async def launch(self, order: LaunchOrder) -> str:
        key = (order.job_id, order.number)
        self.orders[key] += 1
        if self.launch_gate is not None:
            await self.launch_gate.wait()
        if self.refusal is not None:
            raise self.refusal
        if key not in self.attempts:
            self.attempts[key] = Scripted(order=order, seen=self.at_launch)
            self.begun[key] += 1
        return handle_of(*key)

    async def inspect(self, handle: str) -> Observation:
        await self._answer()
        scripted = self.attempts.get(_key(handle))
        return Observation(phase=Phase.gone) if scripted is None else scripted.seen

    async def watch(self) -> AsyncIterator[str]:
        while True:
            yield await self.hints.get()

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        await self._answer()
        if (scripted := self.attempts.get(_key(handle))) is None:
            return
        scripted.stops += 1
        if self.obeys and scripted.seen.phase in {Phase.pending, Phase.running}:
            self.end(*_key(handle), signal=15, exit_code=None, stopped=True)

    async def remove(self, handle: str) -> None:
        await self._answer()
        if self.cannot_remove:
            raise OSError("Device or resource busy")
        self.attempts.pop(_key(handle), None)
        self.removed.append(handle)

    async def handles(self) -> list[str]:
        await self._answer()
        return [handle_of(*key) for key in self.attempts]

    async def tidy_up(self) -> None:
        self.tidied += 1

    async def usage(self, handle: str) -> Usage | None:
        measured = self.usages.get(_key(handle)[0])
        if isinstance(measured, Exception):
            raise measured
        return measured

    async def attach_point(self, handle: str) -> AttachPoint | None:
        return None

    async def _answer(self) -> None:
        if self.answer_gate is not None:
            await self.answer_gate.wait()
        if self.failure is not None:
            raise self.failure

    def begin(self, job_id: str, number: int = 1) -> None:
        """Let the main process of an attempt start."""
        self._see(job_id, number, phase=Phase.running, started_at=now())

    def end(self, job_id: str, number: int = 1, **how: Any) -> None:
        """Let an attempt end by itself; without words, well."""
        scripted = self.attempts[job_id, number]
        started_at: datetime = scripted.seen.started_at or now()
        told = {"exit_code": 0, "started_at": started_at, "ended_at": now()} | how
        self._see(job_id, number, phase=Phase.exited, **told)

    def lose(self, job_id: str, number: int = 1, *, reason: str | None = None) -> None:
        """Let nothing of an attempt be left, nor anything that tells how it ended."""
        self._see(job_id, number, phase=Phase.gone, reason=reason)

    def _see(self, job_id: str, number: int, **changes: Any) -> None:
        scripted = self.attempts[job_id, number]
        scripted.seen = replace(scripted.seen, **changes)
        self.hints.put_nowait(handle_of(job_id, number))


def handle_of(job_id: str, number: int) -> str:
    return f"{job_id}/{number}"


def _key(handle: str) -> Key:
    job_id, _, number = handle.partition("/")
    return job_id, int(number)
