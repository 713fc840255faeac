"""The Overseer at work: by itself, beside others, and in place of one that died."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from hublet.core import clock
from hublet.core.database import Database
from hublet.jobs.overseeing.engine import Overseer
from hublet.jobs.runners.records import Observation, Phase
from jobs.overseen import a_job, an_overseer, attempts, cancel, set_jobs, status
from jobs.scripted_runner import Scripted, ScriptedRunner, handle_of
from scratch import soon


@asynccontextmanager
async def at_work(database: Database, runner: ScriptedRunner) -> AsyncIterator[Overseer]:
    overseer = an_overseer(database, runner)
    overseer.start()
    try:
        yield overseer
    finally:
        await overseer.finish()
        await overseer.abandon()


async def launched(runner: ScriptedRunner, job_id: str, number: int) -> None:
    async def is_there() -> bool:
        return (job_id, number) in runner.attempts

    await soon(is_there)


async def reaches(database: Database, job_id: str, stage: str) -> None:
    async def is_there() -> bool:
        return (await status(database, job_id))[0] == stage

    await soon(is_there)


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

        await soon(is_cleared_away)
        assert runner.tidied == 1


async def test_the_hints_of_the_runner_are_heeded_at_once(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    async with at_work(database, runner):
        job_id = await a_job(database)
        await launched(runner, job_id, 1)
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")
        asked = clock.monotonic()
        runner.end(job_id)
        await reaches(database, job_id, "COMPLETED")
        assert clock.monotonic() - asked < 1.5, "Sooner than the next look would have been."


async def test_a_cancel_is_heeded_at_once(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    async with at_work(database, runner):
        job_id = await a_job(database)
        await launched(runner, job_id, 1)
        runner.begin(job_id)
        await reaches(database, job_id, "RUNNING")
        asked = clock.monotonic()
        await cancel(database, job_id)
        await reaches(database, job_id, "CANCELED")
        assert clock.monotonic() - asked < 1.5


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

        await soon(are_over)


async def test_a_stopped_overseer_lets_attempts_go_on_and_another_finds_them(
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


async def test_an_attempt_whose_launch_nobody_wrote_down_is_launched_under_the_same_key(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    killed = an_overseer(database, runner)
    job_id = await a_job(database)
    await killed.look()
    async with database.transaction() as conn:
        await conn.execute("UPDATE job_attempts SET handle = ''")
        await killed.hand_back(conn)

    other = an_overseer(database, runner)
    await other.look()
    runner.end(job_id)
    await other.look()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert (runner.orders[job_id, 1], runner.begun[job_id, 1]) == (2, 1)


async def test_what_the_runner_has_and_nobody_knows_of_is_ended_after_a_doubt(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    overseer = an_overseer(database, runner)
    job_id = await a_job(database)
    await overseer.look()
    order = runner.attempts[job_id, 1].order
    runner.attempts["stranger", 1] = Scripted(order=order, seen=Observation(phase=Phase.exited))

    await overseer.sweep()
    clock.move(timedelta(seconds=59))
    await overseer.sweep()
    assert runner.removed == []
    clock.move(timedelta(seconds=2))
    await overseer.sweep()

    assert runner.removed == [handle_of("stranger", 1)]
    assert (job_id, 1) in runner.attempts


async def test_a_launch_that_takes_long_is_no_stranger(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    overseer = an_overseer(database, runner)
    runner.launch_gate = asyncio.Event()
    job_id = await a_job(database)
    await overseer.look()
    other = await a_job(database)
    runner.launch_gate.set()
    await overseer.look()
    # As if the first launch had begun something and not told of it yet.
    async with database.transaction() as conn:
        await conn.execute("UPDATE job_attempts SET handle = '' WHERE job_id = $1", job_id)
    await overseer.sweep()
    clock.move(timedelta(seconds=100))
    await overseer.sweep()

    assert runner.removed == []
    assert {(job_id, 1), (other, 1)} <= set(runner.attempts)
    assert runner.attempts[job_id, 1].stops == 0


async def test_a_failed_removal_is_tried_again(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    overseer = an_overseer(database, runner)
    job_id = await a_job(database)
    await overseer.look()
    runner.cannot_remove = True
    runner.end(job_id)
    await overseer.look()
    assert await status(database, job_id) == ("COMPLETED", None)
    runner.cannot_remove = False

    await overseer.sweep()

    assert runner.removed == [handle_of(job_id, 1)]
    [attempt] = await attempts(database, job_id)
    assert attempt["removed_at"] is not None
