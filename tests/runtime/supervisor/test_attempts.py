"""A job from its beginning to its end, as the one who looks after it sees it."""

import json
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.jobs.hardware import offered_flavors
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.supervisor.supervisor import Supervisor
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


async def test_a_job_is_launched_runs_and_completes(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)

    await supervisor.step_all()
    assert await status(database, job_id) == ("SCHEDULING", "starting")
    runner.begin(job_id)
    await supervisor.step_all()
    assert await status(database, job_id) == ("RUNNING", None)
    runner.end(job_id)
    await supervisor.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert await events(database, job_id) == [
        ("SCHEDULING", "queued"),
        ("SCHEDULING", "starting"),
        ("RUNNING", None),
        ("COMPLETED", None),
    ]
    assert runner.removed == [handle_of(job_id, 1)]
    [attempt] = await attempts(database, job_id)
    assert attempt["exit_code"] == 0
    assert attempt["removed_at"] is not None
    assert await column(database, job_id, "due_at") is None
    assert await column(database, job_id, "claimed_by") is None


async def test_the_runner_is_told_everything_it_needs(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(
        database,
        dockerImage="python:3.12",
        command=["python", "-c"],
        arguments=["print(1)"],
        environment={"AB": "1"},
        secrets={"KEY": "hidden"},
        timeoutSeconds=60,
    )

    await supervisor.step_all()

    order = runner.attempts[job_id, 1].order
    folder = database.hub.settings.database.data_dir / "jobs" / job_id[:2] / job_id
    assert (order.job_id, order.number, order.image) == (job_id, 1, "python:3.12")
    assert order.argv == ("python", "-c", "print(1)")
    assert (order.folder, order.log) == (folder / "attempt-1", folder / "log")
    assert order.environment["AB"] == "1"
    assert order.environment["KEY"] == "hidden"
    assert order.environment["JOB_ID"] == job_id
    assert (order.timeout_seconds, order.grace_seconds, order.log_bytes) == (60, 10.0, 2**30)
    assert "hidden" not in repr(order)


async def test_secrets_stay_sealed_with_a_job_that_is_over_for_who_runs_it_again(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, attempts=2, secrets={"KEY": "hidden"})
    await supervisor.step_all()
    runner.end(job_id, exit_code=1)
    await supervisor.step_all()
    assert await column(database, job_id, "sealed_secrets") is not None

    later(2)
    await supervisor.step_all()
    runner.end(job_id, 2)
    await supervisor.step_all()

    assert runner.orders[job_id, 2] == 1
    assert await column(database, job_id, "sealed_secrets") is not None


async def test_the_end_of_a_job_is_a_fact(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, labels={"name": "x"})
    await supervisor.step_all()
    runner.end(job_id, exit_code=3)
    await supervisor.step_all()

    async with database.read() as conn:
        bodies = await conn.fetch_all("SELECT body FROM outbox WHERE kind = 'job.ended'")
    [body] = [json.loads(row["body"]) for row in bodies]
    owner_id = await column(database, job_id, "owner_id")
    assert body == {
        "job_id": job_id,
        "owner_id": owner_id,
        "creator_id": owner_id,
        "name": "x",
        "stage": "ERROR",
        "message": "exit code 3",
    }


async def test_a_failed_attempt_is_followed_by_another_after_a_pause(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, attempts=3)
    await supervisor.step_all()
    runner.end(job_id, exit_code=1)
    await supervisor.step_all()
    assert await status(database, job_id) == ("SCHEDULING", "attempt 2 of 3 after exit code 1")
    assert await column(database, job_id, "failure_count") == 1

    await supervisor.step_all()
    assert (job_id, 2) not in runner.attempts
    later(1)
    await supervisor.step_all()
    runner.lose(job_id, 2)
    await supervisor.step_all()
    assert await status(database, job_id) == (
        "SCHEDULING",
        "attempt 3 of 3 after the runner lost it",
    )
    later(1)
    await supervisor.step_all()
    assert (job_id, 3) not in runner.attempts, "The second pause is twice as long."
    later(1)
    await supervisor.step_all()
    runner.end(job_id, 3, out_of_memory=True, exit_code=137)
    await supervisor.step_all()

    size = runner_memory(database)
    assert await status(database, job_id) == ("ERROR", f"out of memory (limit {size:.3g} GB)")
    assert await column(database, job_id, "failure_count") == 3
    assert [each["number"] for each in await attempts(database, job_id)] == [1, 2, 3]


def runner_memory(database: Database) -> float:
    [size] = offered_flavors(database.hub.settings).values()
    return size.memory_bytes / 2**30


async def test_a_timeout_is_never_tried_again(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, attempts=3, timeoutSeconds=60)
    await supervisor.step_all()
    runner.end(job_id, timed_out=True, exit_code=143)
    await supervisor.step_all()

    assert await status(database, job_id) == ("ERROR", "Job timeout")


async def test_a_runner_that_forgets_the_deadline_is_reminded(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, attempts=3, timeoutSeconds=60)
    await supervisor.step_all()
    runner.begin(job_id)
    await supervisor.step_all()
    later(61)
    await supervisor.step_all()
    assert await status(database, job_id) == ("RUNNING", None)
    later(2)
    await supervisor.step_all()

    assert await status(database, job_id) == ("ERROR", "Job timeout")


async def test_what_can_never_run_ends_with_the_reason(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, attempts=3)
    runner.refusal = CannotRun("there is no image ubuntu")

    await supervisor.step_all()

    assert await status(database, job_id) == ("ERROR", "there is no image ubuntu")
    assert await column(database, job_id, "failure_count") == 0


async def test_what_cannot_run_yet_is_tried_again_and_uses_up_no_attempt(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    runner.refusal = CannotRunYet("the disk is full")
    await supervisor.step_all()
    assert await status(database, job_id) == ("SCHEDULING", "the disk is full")
    await supervisor.step_all()
    assert runner.orders[job_id, 1] == 1

    later(1.5)
    await supervisor.step_all()
    assert runner.orders[job_id, 1] == 2
    later(1)
    await supervisor.step_all()
    assert runner.orders[job_id, 1] == 2, "It waits as long again as it has waited so far."
    later(2)
    await supervisor.step_all()
    assert runner.orders[job_id, 1] == 3
    runner.refusal = None
    later(60)
    await supervisor.step_all()
    runner.end(job_id)
    await supervisor.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert await column(database, job_id, "failure_count") == 0


async def test_what_does_not_begin_in_its_time_ends_with_what_stood_in_the_way(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    runner.refusal = CannotRunYet("the disk is full")
    await supervisor.step_all()
    later(3599)
    await supervisor.step_all()
    assert await status(database, job_id) == ("SCHEDULING", "the disk is full")
    later(60)
    await supervisor.step_all()

    assert await status(database, job_id) == (
        "ERROR",
        "it did not begin within 3600 s: the disk is full",
    )


async def test_an_attempt_that_the_runner_never_begins_is_ended(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    await supervisor.step_all()
    later(3600)
    await supervisor.step_all()

    assert await status(database, job_id) == ("ERROR", "it did not begin within 3600 s")
    await supervisor.sweep()
    assert runner.removed == [handle_of(job_id, 1)]


async def test_a_runner_that_stumbles_lets_the_job_wait(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    runner.refusal = RuntimeError("secret detail")

    await supervisor.step_all()

    assert await status(database, job_id) == (
        "SCHEDULING",
        "the runner stumbled; the log of the hub says why",
    )


async def test_a_runner_that_cannot_tell_changes_only_the_message(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    await supervisor.step_all()
    runner.begin(job_id)
    await supervisor.step_all()
    runner.failure = ConnectionError("gone fishing")
    await supervisor.step_all()
    assert await status(database, job_id) == (
        "RUNNING",
        "the runner does not answer: ConnectionError",
    )
    runner.failure = None
    await supervisor.step_all()

    assert await status(database, job_id) == ("RUNNING", None)


async def test_times_are_those_of_the_runner_and_durations_add_up(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database, attempts=2)
    created_at = await column(database, job_id, "created_at")
    later(5)
    await supervisor.step_all()
    runner.begin(job_id)
    await supervisor.step_all()
    later(10)
    runner.end(job_id, exit_code=1)
    # Nobody looks for a while: the job ended when it ended.
    later(100)
    await supervisor.step_all()
    later(2)
    await supervisor.step_all()
    runner.begin(job_id, 2)
    await supervisor.step_all()
    later(20)
    runner.end(job_id, 2)
    ended = micros()
    later(50)
    await supervisor.step_all()

    seconds = [
        (await column(database, job_id, name) - created_at) / 1e6
        for name in ("started_at", "finished_at")
    ]
    assert seconds == [pytest.approx(5, abs=2), pytest.approx((ended - created_at) / 1e6, abs=2)]
    assert await column(database, job_id, "running_micros") / 1e6 == pytest.approx(30, abs=2)


async def test_a_job_whose_owner_was_disabled_does_not_start(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1")

    await supervisor.step_all()

    assert await status(database, job_id) == ("ERROR", "the account of its owner is disabled")
    assert not runner.orders


async def test_a_job_whose_owner_is_gone_does_not_start(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    async with database.transaction() as conn:
        await conn.execute("UPDATE jobs SET owner_id = 'nobody'")

    await supervisor.step_all()

    assert await status(database, job_id) == ("ERROR", "its owner is gone")
    assert not runner.orders


async def test_a_flavor_that_is_not_offered_any_more_ends_the_job(
    database: Database, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    set_jobs(database, flavors=())

    await a_supervisor(database, runner).step_all()

    assert await status(database, job_id) == (
        "ERROR",
        "this hub does not offer cpu-basic any more",
    )


async def test_an_end_is_final(
    database: Database, supervisor: Supervisor, runner: ScriptedRunner
) -> None:
    job_id = await a_job(database)
    await supervisor.step_all()
    runner.end(job_id)
    await supervisor.step_all()
    await cancel(database, job_id)
    later(100)
    await supervisor.step_all()
    await supervisor.sweep()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert await column(database, job_id, "cancel_requested_at") is None
