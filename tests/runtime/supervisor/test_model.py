"""Whatever happens in whatever order: a job ends once, for a reason, and leaves nothing behind."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.jobs.records import Phase
from hublet.runtime.errors import CannotRun, CannotRunYet
from runtime.supervisor.scripted_runner import Key, ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor, cancel

T = TypeVar("T")

RING = KeyRing.new()
TERMINAL = {"COMPLETED", "ERROR", "CANCELED"}
PICK = strategies.integers(0, 9)
SECOND = 1_000_000
# Longer than any pause, so that everything comes to its end.
ROUNDS = 40


class Jobs(RuleBasedStateMachine):
    """Jobs, a runner that does as it is told, and a Supervisor that may die."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.runner = ScriptedRunner()
        self.ends: dict[str, str] = {}
        self.attempts: dict[str, int] = {}
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    async def open(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        shutil.copy(self.template, folder / "hub.db")
        plain = Settings()
        plain = replace(
            plain,
            database=replace(plain.database, data_dir=folder),
            jobs=replace(plain.jobs, concurrent=3, cores=100, memory_bytes=2**40, start_seconds=90),
        )
        self.database = await self.stack.enter_async_context(
            open_database(Hub(settings=plain, keys=RING))
        )
        self.supervisor = a_supervisor(self.database, self.runner)

    @rule(attempts=strategies.integers(1, 3), owner=strategies.sampled_from(["ada", "bob"]))
    def create(self, attempts: int, owner: str) -> None:
        job_id = self.run(a_job(self.database, owner, attempts=attempts, timeoutSeconds=30))
        self.attempts[job_id] = attempts

    @rule()
    def look(self) -> None:
        self.run(self.supervisor.step_all())

    def live(self, *phases: Phase) -> list[Key]:
        return [key for key, each in self.runner.attempts.items() if each.seen.phase in phases]

    @precondition(lambda self: self.live(Phase.pending))
    @rule(pick=PICK)
    def begin(self, pick: int) -> None:
        keys = self.live(Phase.pending)
        self.runner.begin(*keys[pick % len(keys)])

    @precondition(lambda self: self.live(Phase.pending, Phase.running))
    @rule(pick=PICK, how=strategies.sampled_from([0, 0, 1, 137]), timed_out=strategies.booleans())
    def end(self, *, pick: int, how: int, timed_out: bool) -> None:
        keys = self.live(Phase.pending, Phase.running)
        self.runner.end(*keys[pick % len(keys)], exit_code=how, timed_out=timed_out and how == 1)

    @precondition(lambda self: self.live(Phase.pending, Phase.running))
    @rule(pick=PICK)
    def lose(self, pick: int) -> None:
        keys = self.live(Phase.pending, Phase.running)
        self.runner.lose(*keys[pick % len(keys)], reason="machine restarted")

    @precondition(lambda self: self.attempts)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        job_id = list(self.attempts)[pick % len(self.attempts)]
        self.run(self.cancel_as_its_owner(job_id))

    async def cancel_as_its_owner(self, job_id: str) -> None:
        async with self.database.read() as conn:
            owner = await conn.fetch_value(
                "SELECT u.name FROM jobs j JOIN users u ON u.id = j.owner_id WHERE j.id = $1",
                job_id,
            )
        await cancel(self.database, job_id, owner)

    @rule(seconds=strategies.sampled_from([0.4, 1.2, 5, 16, 40, 100]))
    def wait(self, seconds: float) -> None:
        clock.move(timedelta(seconds=seconds))

    @rule(
        refusal=strategies.sampled_from(
            [None, None, CannotRunYet("the disk is full"), CannotRun("there is no such image")]
        )
    )
    def refuse(self, refusal: Exception | None) -> None:
        self.runner.refusal = refusal

    @rule(is_silent=strategies.booleans())
    def silence(self, *, is_silent: bool) -> None:
        self.runner.failure = ConnectionError("away") if is_silent else None

    @rule(obeys=strategies.booleans(), cannot_remove=strategies.booleans())
    def disobey(self, *, obeys: bool, cannot_remove: bool) -> None:
        self.runner.obeys, self.runner.cannot_remove = obeys, cannot_remove

    @precondition(lambda self: self.runner.failure is None)
    @rule()
    def sweep(self) -> None:
        self.run(self.supervisor.sweep())

    @rule()
    def die(self) -> None:
        """Another Supervisor takes over what this one held, once its lease has run out."""
        self.run(self.take_over())

    async def take_over(self) -> None:
        async with self.database.transaction() as conn:
            await self.supervisor.hand_back(conn)
        self.supervisor = a_supervisor(self.database, self.runner)

    @invariant()
    def holds(self) -> None:
        self.run(self.check())

    async def check(self) -> None:
        async with self.database.read() as conn:
            jobs = await conn.fetch_all("SELECT * FROM jobs")
            happenings = await conn.fetch_all("SELECT job_id, stage FROM job_events")
            facts = await conn.fetch_value("SELECT count(*) FROM outbox WHERE kind = 'job.ended'")
        for job in jobs:
            self.check_job(job)
        ends = [row["job_id"] for row in happenings if row["stage"] in TERMINAL]
        assert sorted(ends) == sorted(self.ends), "Each job ends once."
        assert facts == len(ends)
        assert set(self.runner.begun.values()) <= {1}, "No attempt is begun twice."

    def check_job(self, job: Any) -> None:
        if job["stage"] in TERMINAL:
            assert self.ends.setdefault(job["id"], job["stage"]) == job["stage"], "Ends are final."
            assert job["finished_at"] is not None
            assert job["due_at"] is None
        else:
            assert job["id"] not in self.ends
            assert job["finished_at"] is None
        if job["stage"] in {"SCHEDULING", "ERROR"}:
            assert job["message"]
        assert job["attempt"] <= self.attempts[job["id"]]
        assert job["attempt"] - 1 <= job["failure_count"] <= job["attempt"]
        if job["stage"] == "COMPLETED":
            assert job["failure_count"] == job["attempt"] - 1
        until = job["finished_at"] or micros()
        assert 0 <= job["running_micros"] <= until - job["created_at"]
        if job["started_at"] is not None:
            assert job["created_at"] <= job["started_at"] <= until
            assert job["running_micros"] <= until - job["started_at"]

    @precondition(lambda self: self.attempts)
    @rule()
    def cancels_are_bounded(self) -> None:
        """After the grace and five seconds a look finds no canceled job that goes on."""
        grace = self.database.hub.settings.jobs.grace_seconds
        clock.move(timedelta(seconds=grace + 5))
        self.run(self.supervisor.step_all())
        assert self.run(self.count("cancel_requested_at IS NOT NULL AND due_at IS NOT NULL")) == 0

    async def count(self, condition: str) -> int:
        async with self.database.read() as conn:
            return int(await conn.fetch_value(f"SELECT count(*) FROM jobs WHERE {condition}"))

    def teardown(self) -> None:
        try:
            self.finish()
        finally:
            self.run(self.stack.aclose())
            self.loop.close()
            clock.reset()

    def finish(self) -> None:
        """Everything comes to its end once nothing stands in the way, and is cleared away."""
        self.runner.failure = self.runner.refusal = None
        self.runner.obeys, self.runner.cannot_remove = True, False
        for _ in range(ROUNDS):
            self.look()
            for key in self.live(Phase.pending, Phase.running):
                self.runner.end(*key)
            clock.move(timedelta(seconds=61))
            # An attempt that was too late to begin keeps its place until it is cleared away.
            self.sweep()
        self.holds()
        assert set(self.ends) == set(self.attempts)
        assert not self.runner.attempts


def test_jobs_keep_their_promises(sqlite_template: Path) -> None:
    Jobs.template = sqlite_template

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Jobs,
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
