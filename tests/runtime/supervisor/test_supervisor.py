"""The Supervisor at work: by itself, beside others, and in place of one that died."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.records import JobRecord, Observation, Phase
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.supervisor import launcher, scheduling, stepper, store
from hublet.runtime.supervisor.supervisor import Supervisor
from patience import SOON_SECONDS
from runtime.supervisor.scripted_runner import Scripted, ScriptedRunner, handle_of
from runtime.supervisor.supervised_jobs import (
    a_job,
    a_supervisor,
    attempts,
    cancel,
    set_jobs,
    status,
    wait_for_wakes_alone,
)
from scratch_database import wait_until


@asynccontextmanager
async def at_work(database: Database, runner: ScriptedRunner) -> AsyncIterator[Supervisor]:
    supervisor = a_supervisor(database, runner)
    supervisor.start()
    try:
        yield supervisor
    finally:
        await supervisor.finish()
        await supervisor.abandon()


async def launched(runner: ScriptedRunner, job_id: str, number: int) -> None:
    async def is_there() -> bool:
        return (job_id, number) in runner.attempts

    await wait_until(is_there)


async def reaches(database: Database, job_id: str, stage: str) -> None:
    async def is_there() -> bool:
        return (await status(database, job_id))[0] == stage

    await wait_until(is_there)


async def test_a_job_is_seen_through_by_itself(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    async with at_work(database, runner):
        job_id = await a_job(database, attempts=2)
        await launched(runner, job_id, 1)
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")
        runner.end(job_id, exit_code=1)
        # The pause before the next attempt is a real second.
        await launched(runner, job_id, 2)
        runner.end(job_id, 2)
        await reaches(database, job_id, "COMPLETED")

        async def is_cleared_away() -> bool:
            return not runner.attempts

        await wait_until(is_cleared_away)
        assert runner.tidied == 1


async def test_the_hints_of_the_runner_are_heeded_at_once(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_with_room
    monkeypatch.setattr(stepper, "POLL_SECONDS", 3600)
    async with at_work(database, runner):
        job_id = await a_job(database)
        await launched(runner, job_id, 1)
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")
        runner.end(job_id)
        await reaches(database, job_id, "COMPLETED")


async def test_a_cancel_is_heeded_at_once(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_with_room
    monkeypatch.setattr(stepper, "POLL_SECONDS", 3600)
    async with at_work(database, runner):
        job_id = await a_job(database)
        await launched(runner, job_id, 1)
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")
        await cancel(database, job_id)
        await reaches(database, job_id, "CANCELED")


async def test_many_jobs_come_to_their_end(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    set_jobs(database, concurrent=5)
    async with at_work(database, runner):
        jobs = [await a_job(database) for _ in range(20)]

        async def are_over() -> bool:
            for key, each in list(runner.attempts.items()):
                if each.seen.phase is Phase.pending:
                    runner.end(*key)
            assert len(runner.attempts) <= 5
            return {await status(database, job) for job in jobs} == {("COMPLETED", None)}

        await wait_until(are_over)


async def test_no_job_of_a_long_queue_waits_for_another_wake(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_with_room
    monkeypatch.setattr(scheduling, "_JOBS_PER_OWNER", 2)
    jobs = [await a_job(database) for _ in range(5)]
    wait_for_wakes_alone(database)
    async with at_work(database, runner):
        for job_id in jobs:
            await launched(runner, job_id, 1)


async def test_a_place_that_becomes_free_is_given_away_at_once(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    set_jobs(database, concurrent=1)
    wait_for_wakes_alone(database)
    async with at_work(database, runner):
        first, second, third = [await a_job(database) for _ in range(3)]
        await launched(runner, first, 1)
        runner.end(first)
        await launched(runner, second, 1)
        await cancel(database, second)
        await launched(runner, third, 1)


async def test_a_job_that_cannot_begin_gives_its_place_away_at_once(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    set_jobs(database, concurrent=1)
    wait_for_wakes_alone(database)
    runner.refusal = CannotRun("no such image")
    async with at_work(database, runner):
        for job_id in [await a_job(database) for _ in range(3)]:
            await reaches(database, job_id, "ERROR")


async def test_jobs_that_are_refused_hold_up_none_behind_them(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_with_room
    monkeypatch.setattr(scheduling, "_JOBS_PER_OWNER", 2)
    jobs = [await a_job(database) for _ in range(5)]
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1")
    wait_for_wakes_alone(database)
    async with at_work(database, runner):
        for job_id in jobs:
            await reaches(database, job_id, "ERROR")


async def test_a_launch_that_never_ends_gives_its_place_away_when_it_is_canceled(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    set_jobs(database, concurrent=1)
    wait_for_wakes_alone(database)
    runner.launch_gate = asyncio.Event()

    async def are_ordered(*jobs: str) -> bool:
        return set(runner.orders) == {(job_id, 1) for job_id in jobs}

    async with at_work(database, runner):
        first, second = [await a_job(database) for _ in range(2)]
        await wait_until(lambda: are_ordered(first))
        await cancel(database, first)
        clock.move(timedelta(minutes=1))
        await wait_until(lambda: are_ordered(first, second))


async def test_the_next_attempt_and_a_job_that_was_handed_back_wait_for_no_look(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    wait_for_wakes_alone(database)
    before = a_supervisor(database, runner)
    job_id = await a_job(database, attempts=2)
    await before.step_all()
    async with at_work(database, runner):
        runner.end(job_id, exit_code=1)
        async with database.transaction() as conn:
            await before.hand_back(conn)
        await launched(runner, job_id, 2)


async def test_an_attempt_that_runs_when_it_is_launched_is_seen_in_the_same_step(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    runner.at_launch = Observation(phase=Phase.running, started_at=clock.now())
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)

    await supervisor.step_all()

    assert await status(database, job_id) == ("RUNNING", None)
    (attempt,) = await attempts(database, job_id)
    assert attempt["handle"] == handle_of(job_id, 1)
    assert attempt["started_at"] is not None


async def test_an_attempt_that_ends_before_its_launch_does_is_missed_by_nobody(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_with_room
    monkeypatch.setattr(stepper, "POLL_SECONDS", 3600)
    runner.at_launch = Observation(phase=Phase.exited, exit_code=0, started_at=clock.now())
    async with at_work(database, runner):
        job_id = await a_job(database)
        await reaches(database, job_id, "COMPLETED")


class _EndsWhenItIsSeen(ScriptedRunner):
    """Its attempts end when somebody has just seen them run."""

    async def inspect(self, handle: str) -> Observation:
        seen = await ScriptedRunner.inspect(self, handle)
        if seen.phase is Phase.running:
            self.end(handle.partition("/")[0])
        return seen


async def test_an_end_that_comes_while_the_start_is_written_is_not_missed(
    database_with_room: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, runner = database_with_room, _EndsWhenItIsSeen()
    monkeypatch.setattr(stepper, "POLL_SECONDS", 3600)
    monkeypatch.setattr(stepper, "_LAUNCH_SECONDS", 0.05)
    set_handle = store.set_handle

    async def set_handle_slowly(*args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0.02)
        await set_handle(*args, **kwargs)

    monkeypatch.setattr(store, "set_handle", set_handle_slowly)
    runner.at_launch = Observation(phase=Phase.running, started_at=clock.now())
    runner.launch_gate = asyncio.Event()
    async with at_work(database, runner):
        job_id = await a_job(database)

        async def is_ordered() -> bool:
            return bool(runner.orders)

        await wait_until(is_ordered)
        # The step that began the launch waits for it no longer.
        await asyncio.sleep(0.1)
        runner.launch_gate.set()
        await reaches(database, job_id, "COMPLETED")


async def test_a_handle_is_written_though_the_runner_says_no_more(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    runner.answer_gate = asyncio.Event()
    async with at_work(database, runner):
        job_id = await a_job(database)

        async def is_written() -> bool:
            return await _has_a_handle(database, job_id, 1)

        await wait_until(is_written)
        runner.answer_gate.set()
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")


async def test_a_stopped_supervisor_lets_attempts_go_on_and_another_finds_them(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    async with at_work(database, runner) as first:
        job_id = await a_job(database)
        await launched(runner, job_id, 1)
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")
    async with database.transaction() as conn:
        assert await first.hand_back(conn) == 1
    assert runner.attempts[job_id, 1].stops == 0
    runner.end(job_id, exit_code=7)

    async with at_work(database, runner):
        await reaches(database, job_id, "ERROR")
    assert await status(database, job_id) == ("ERROR", "exit code 7")
    assert runner.orders[job_id, 1] == 1


async def launched_and_forgotten(database: Database, runner: ScriptedRunner) -> str:
    """Return a job whose attempt was begun by a hub that was killed before it wrote that down."""
    killed = a_supervisor(database, runner)
    job_id = await a_job(database)
    await killed.step_all()
    async with database.transaction() as conn:
        await conn.execute("UPDATE job_attempts SET handle = ''")
        await killed.hand_back(conn)
    return job_id


async def test_an_attempt_whose_launch_nobody_wrote_down_is_launched_under_the_same_key(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    job_id = await launched_and_forgotten(database, runner)

    other = a_supervisor(database, runner)
    await other.step_all()
    runner.end(job_id)
    await other.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert (runner.orders[job_id, 1], runner.begun[job_id, 1]) == (2, 1)


async def test_what_the_runner_has_and_nobody_knows_of_is_ended_after_a_doubt(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    await supervisor.step_all()
    order = runner.attempts[job_id, 1].order
    runner.attempts["stranger", 1] = Scripted(order=order, seen=Observation(phase=Phase.exited))

    await supervisor.sweep()
    clock.move(timedelta(seconds=59))
    await supervisor.sweep()
    assert runner.removed == []
    clock.move(timedelta(seconds=2))
    await supervisor.sweep()

    assert runner.removed == [handle_of("stranger", 1)]
    assert (job_id, 1) in runner.attempts


async def test_a_launch_that_takes_long_is_no_stranger(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    runner.launch_gate = asyncio.Event()
    job_id = await a_job(database)
    await supervisor.step_all()
    other = await a_job(database)
    runner.launch_gate.set()
    await supervisor.step_all()
    # As if the first launch had begun something and not told of it yet.
    async with database.transaction() as conn:
        await conn.execute("UPDATE job_attempts SET handle = '' WHERE job_id = $1", job_id)
    await supervisor.sweep()
    clock.move(timedelta(seconds=100))
    await supervisor.sweep()

    assert runner.removed == []
    assert {(job_id, 1), (other, 1)} <= set(runner.attempts)
    assert runner.attempts[job_id, 1].stops == 0


async def test_what_a_killed_hub_launched_is_no_stranger_while_its_job_waits(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    job_id = await launched_and_forgotten(database, runner)

    # Somebody else got its place meanwhile, so that nobody takes it.
    other = a_supervisor(database, runner)
    await other.sweep()
    clock.move(timedelta(seconds=100))
    await other.sweep()

    assert runner.attempts[job_id, 1].stops == 0


async def test_what_another_runner_began_is_left_to_it(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    before = a_supervisor(database, runner)
    job_id = await a_job(database, attempts=2)
    await before.step_all()
    runner.begin(job_id)
    await before.step_all()
    async with database.transaction() as conn:
        await before.hand_back(conn)

    now_used = ScriptedRunner(name="other")
    after = a_supervisor(database, now_used)
    await after.step_all()
    said = "the runner does not answer: scripted began it, and jobs.runner names another"
    assert await status(database, job_id) == ("RUNNING", said)
    async with database.transaction() as conn:
        await after.hand_back(conn)
    runner.end(job_id)
    await before.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert now_used.orders == {}


async def test_what_was_prepared_for_an_attempt_that_never_began_goes(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    folder = job_folder(database.hub.settings.database.data_dir, job_id) / "attempt-1"
    (folder / "volumes").mkdir(parents=True)
    runner.refusal = CannotRun("there is no image ubuntu")

    await supervisor.step_all()

    assert (await status(database, job_id))[0] == "ERROR"
    assert not folder.exists()


async def test_what_has_begun_after_all_keeps_its_folder(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    job_id = await a_job(database)
    runner.refusal = CannotRunYet("the disk is full")
    supervisor = a_supervisor(database, runner)
    await supervisor.step_all()
    # As if a hub that was killed before it wrote so down had begun it.
    folder = job_folder(database.hub.settings.database.data_dir, job_id) / "attempt-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "status.json").write_text("{}")
    await cancel(database, job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("CANCELED", None)
    assert folder.exists()


async def test_what_is_still_prepared_when_it_is_canceled_goes_afterwards(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = database_with_room
    goes_on = threading.Event()
    monkeypatch.setattr(launcher, "_PATIENCE_SECONDS", 0)

    def prepared_slowly(folder: Path) -> None:
        goes_on.wait(SOON_SECONDS)
        (folder / "volumes").mkdir(parents=True)

    async def prepare(_: Database, __: JobRecord, *, folder: Path) -> None:
        await run_in_launch_thread(prepared_slowly, folder)

    monkeypatch.setattr(launcher, "prepare", prepare)
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    folder = job_folder(database.hub.settings.database.data_dir, job_id) / "attempt-1"
    await supervisor.step_all()
    await cancel(database, job_id)
    await supervisor.step_all()
    assert await status(database, job_id) == ("CANCELED", None)
    goes_on.set()

    await wait_until(lambda: _is_gone_for_good(folder))
    assert runner.orders == {}


async def test_a_slow_launch_is_not_taken_for_that_of_the_next_attempt(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, runner.launch_gate = database_with_room, asyncio.Event()
    monkeypatch.setattr(stepper, "_LAUNCH_SECONDS", 0)
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database, attempts=2)
    await supervisor.step_all()
    runner.launch_gate.set()
    await wait_until(lambda: _has_a_handle(database, job_id, 1))
    runner.end(job_id, exit_code=1)
    await supervisor.step_all()
    clock.move(timedelta(seconds=1))

    await supervisor.step_all()
    await wait_until(lambda: _has_a_handle(database, job_id, 2))
    runner.end(job_id, 2)
    await supervisor.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert runner.begun == {(job_id, 1): 1, (job_id, 2): 1}


async def _has_a_handle(database: Database, job_id: str, number: int) -> bool:
    made = await attempts(database, job_id)
    return len(made) == number and bool(made[-1]["handle"])


async def _is_gone_for_good(folder: Path) -> bool:
    is_there = [await asyncio.to_thread(folder.exists)]
    await asyncio.sleep(0.2)
    is_there.append(await asyncio.to_thread(folder.exists))
    return not any(is_there)


async def test_a_failed_removal_is_tried_again(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    await supervisor.step_all()
    runner.cannot_remove = True
    runner.end(job_id)
    await supervisor.step_all()
    assert await status(database, job_id) == ("COMPLETED", None)
    runner.cannot_remove = False

    await supervisor.sweep()

    assert runner.removed == [handle_of(job_id, 1)]
    [attempt] = await attempts(database, job_id)
    assert attempt["removed_at"] is not None
