"""Somebody wants a job to end: it does, within a bound, whatever the runner does."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.jobs.service import transition
from hublet.jobs.stages import UNCONFIRMED, StageChange, Trigger
from hublet.runtime.errors import CannotRunYet
from hublet.runtime.supervisor import runner_calls, store
from hublet.runtime.supervisor.supervisor import Supervisor
from patience import SOON_SECONDS
from runtime.supervisor.scripted_runner import ScriptedRunner, handle_of
from runtime.supervisor.supervised_jobs import (
    a_job,
    a_supervisor,
    attempts,
    cancel,
    column,
    events,
    set_jobs,
    status,
)


@pytest.fixture
def runner() -> ScriptedRunner:
    return ScriptedRunner()


@pytest.fixture
def supervisor(database: Database, runner: ScriptedRunner) -> Supervisor:
    set_jobs(database, cores=100, memory_bytes=2**40)
    return a_supervisor(database, runner)


def later(seconds: float) -> None:
    clock.move(timedelta(seconds=seconds))


async def running(database: Database, supervisor: Supervisor, runner: ScriptedRunner) -> str:
    job_id = await a_job(database, attempts=3)
    await supervisor.step_all()
    runner.begin(job_id)
    await supervisor.step_all()
    return job_id


async def test_a_running_job_is_stopped_and_canceled(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
    assert runner.removed == [handle_of(job_id, 1)]
    assert await column(database, job_id, "failure_count") == 0
    assert await column(database, job_id, "finished_at") is not None


async def test_a_job_that_nobody_has_begun_is_canceled_at_once(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
    assert not runner.orders
    assert await attempts(database, job_id) == []


async def test_a_job_waiting_for_capacity_is_canceled_at_once(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, concurrent=1)
    supervisor = a_supervisor(database, runner)
    await running(database, supervisor, runner)
    waiting = await a_job(database)
    await supervisor.step_all()
    await cancel(database, waiting)

    await supervisor.step_all()

    assert await status(database, waiting) == ("CANCELED", None)


async def test_a_cancel_interrupts_the_pause_before_the_next_attempt(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    runner.end(job_id, exit_code=1)
    await supervisor.step_all()
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
    assert await column(database, job_id, "failure_count") == 1


async def test_a_cancel_interrupts_a_start_that_is_tried_again_and_again(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    runner.refusal = CannotRunYet("the disk is full")
    await supervisor.step_all()
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
    [attempt] = await attempts(database, job_id)
    assert attempt["removed_at"] is not None


async def test_a_job_that_fails_while_it_is_canceled_is_not_tried_again(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    runner.end(job_id, exit_code=1)
    later(1)
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)


async def test_a_job_that_had_ended_before_is_what_it_was(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    runner.end(job_id)
    later(1)
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)


async def test_a_job_that_ends_well_after_it_was_asked_to_is_canceled(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    await cancel(database, job_id)
    later(1)
    runner.end(job_id, stopped=True)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)


async def test_a_stubborn_attempt_is_asked_again_until_the_bound(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    runner.obeys = False
    job_id = await running(database, supervisor, runner)
    await cancel(database, job_id)
    await supervisor.step_all()
    later(12)
    await supervisor.step_all()
    assert await status(database, job_id) == ("RUNNING", None)
    assert runner.attempts[job_id, 1].stops == 2

    later(1)
    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", UNCONFIRMED)
    assert runner.attempts[job_id, 1].stops == 3, "It is asked on after that."
    [attempt] = await attempts(database, job_id)
    assert (attempt["ended_at"], attempt["removed_at"]) == (None, None)


async def test_what_runs_on_after_the_bound_is_ended_when_it_can_be(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    runner.obeys = False
    job_id = await running(database, supervisor, runner)
    await cancel(database, job_id)
    later(13)
    await supervisor.step_all()
    runner.obeys = True

    await supervisor.sweep()
    await supervisor.sweep()

    assert runner.removed == [handle_of(job_id, 1)]
    [attempt] = await attempts(database, job_id)
    assert attempt["removed_at"] is not None
    assert await status(database, job_id) == ("CANCELED", UNCONFIRMED)


async def test_a_sweep_goes_on_while_a_runner_is_away_and_ends_nothing_then(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    runner.failure = OSError("The cluster is away.")

    await supervisor.sweep()
    later(61)
    await supervisor.sweep()
    runner.failure = None
    await supervisor.sweep()

    assert runner.attempts[job_id, 1].stops == 0
    assert runner.removed == []


async def test_a_runner_that_never_lists_its_attempts_does_not_hold_up_a_sweep(
    supervisor: Supervisor, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_calls, "LIST_TIMEOUT_SECONDS", 0.001)
    runner.answer_gate = asyncio.Event()

    await asyncio.wait_for(supervisor.sweep(), SOON_SECONDS)


async def test_a_runner_that_never_answers_does_not_hold_up_a_cancel(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    runner.answer_gate = asyncio.Event()
    await cancel(database, job_id)
    later(11)

    await supervisor.step_all()
    later(1.5)
    looking = asyncio.create_task(supervisor.step_all())
    async with asyncio.timeout(SOON_SECONDS):
        while await status(database, job_id) != ("CANCELED", UNCONFIRMED):
            await asyncio.sleep(0.01)
    runner.answer_gate.set()
    await looking


async def test_a_launch_that_goes_on_is_left_at_the_bound_and_cleared_later(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    runner.launch_gate = asyncio.Event()
    job_id = await a_job(database)
    await supervisor.step_all()
    await cancel(database, job_id)
    await supervisor.step_all()
    assert await status(database, job_id) == ("SCHEDULING", "starting")
    later(13)
    await supervisor.step_all()
    assert await status(database, job_id) == ("CANCELED", UNCONFIRMED)

    runner.launch_gate.set()
    async with asyncio.timeout(SOON_SECONDS):
        while not (await attempts(database, job_id))[0]["handle"]:
            await asyncio.sleep(0.01)
    await supervisor.sweep()
    await supervisor.sweep()

    assert runner.removed == [handle_of(job_id, 1)]
    assert [stage for stage, _ in await events(database, job_id)][-1] == "CANCELED"


@dataclass(slots=True)
class _Measured(ScriptedRunner):
    """Notes whose usage it was asked for."""

    asked: list[str] = field(default_factory=list)

    async def usage(self, handle: str) -> None:
        self.asked.append(handle)


async def test_what_is_launched_after_the_bound_is_not_measured_for_ever(
    database: Database,
) -> None:
    runner = _Measured(launch_gate=asyncio.Event())
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    await supervisor.step_all()
    await cancel(database, job_id)
    later(13)
    await supervisor.step_all()

    assert runner.launch_gate is not None
    runner.launch_gate.set()
    async with asyncio.timeout(SOON_SECONDS):
        while not (await attempts(database, job_id))[0]["handle"]:
            await asyncio.sleep(0.01)
    await supervisor.sweep()
    await supervisor.sweep()
    await supervisor.sample()

    assert runner.removed == [handle_of(job_id, 1)]
    assert runner.asked == []


async def test_what_the_runner_takes_over_after_the_cancel_is_stopped(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    runner.launch_gate = asyncio.Event()
    job_id = await a_job(database)
    await supervisor.step_all()
    await cancel(database, job_id)
    runner.launch_gate.set()
    await supervisor.step_all()
    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
    assert runner.removed == [handle_of(job_id, 1)]


async def test_a_cancel_in_the_moment_of_a_failure_waits_for_no_back_off(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await running(database, supervisor, runner)
    worker = await column(database, job_id, "claimed_by")
    async with database.read() as conn:
        held = await store.find_held(conn, job_id, supervisor.machine.locality(), worker=worker)
    assert held is not None
    await cancel(database, job_id)

    async with database.transaction() as conn:
        failed = StageChange(
            trigger=Trigger.failed, message=None, wait=60_000_000, releases_lease=True
        )
        assert await transition(conn, held.job, failed) is None
    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
