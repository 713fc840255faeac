"""Who holds a job: one Supervisor at a time, for as long as it gives signs of life."""

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.machine import identify
from hublet.jobs.service import transition
from hublet.jobs.stages import StageChange, Trigger
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.records import Locality
from hublet.runtime.supervisor.supervisor import Supervisor
from jobs.jobs_api import set_row
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor, column, status


async def test_what_a_silent_supervisor_holds_is_left_alone_until_its_lease_ends(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    silent = a_supervisor(database, runner)
    other = a_supervisor(database, runner)
    job_id = await a_job(database)
    await silent.step_all()
    runner.end(job_id)

    await beat(other)
    await other.step_all()
    assert await status(database, job_id) == ("SCHEDULING", "starting")
    await set_row(database, job_id, claimed_until=1)
    await beat(other)
    await other.step_all()

    assert await status(database, job_id) == ("COMPLETED", None)
    await silent.step_all()
    assert await status(database, job_id) == ("COMPLETED", None)
    assert runner.begun[job_id, 1] == 1


async def beat(supervisor: Supervisor) -> None:
    """Let it give its sign of life now, whenever it did so last."""
    await supervisor.leases.extend()


async def test_a_sign_of_life_keeps_what_is_held(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    await supervisor.step_all()
    holder = await column(database, job_id, "claimed_by")
    await set_row(database, job_id, claimed_until=1)

    await beat(supervisor)

    assert await column(database, job_id, "claimed_by") == holder
    assert await column(database, job_id, "claimed_until") > clock.micros()


async def test_a_job_that_is_held_without_knowing_is_let_go_of(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    await set_row(database, job_id, claimed_by=supervisor._worker, claimed_until=2**60)  # noqa: SLF001 - as after a commit that was kept and never heard of

    await beat(supervisor)

    assert await column(database, job_id, "claimed_by") is None


async def test_a_supervisor_that_lost_its_job_changes_nothing(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    supervisor = a_supervisor(database, runner)
    job_id = await a_job(database)
    await supervisor.step_all()
    await set_row(database, job_id, claimed_by="another", claimed_until=2**60)
    runner.end(job_id)

    await supervisor.step_all()

    assert await status(database, job_id) == ("SCHEDULING", "starting")


async def test_a_job_is_taken_once_and_changed_only_by_who_saw_it_last(database: Database) -> None:
    job_id = await a_job(database)
    change = StageChange(trigger=Trigger.progress, message="starting")
    async with database.transaction() as conn:
        assert await store.claim(conn, job_id, worker="one", lease=1)
        assert not await store.claim(conn, job_id, worker="other", lease=1)
        here = Locality(machine=identify(database.hub.settings), lost_before=0)
        held = await store.find_held(conn, job_id, here, worker="one")
        assert held is not None
        assert await transition(conn, held.job, change) is not None
        assert await transition(conn, held.job, change) is None

    assert await column(database, job_id, "version") == 2
    assert await column(database, job_id, "claimed_by") == "one"
