"""Who gets a place: as many as fit, owners in turn, the oldest first."""

import asyncio
import os
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Database
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor, attempts, set_jobs, status

GIB = 2**30
FLAVORS = (
    FlavorSize(name="cpu-basic", cores=1, memory_bytes=GIB),
    FlavorSize(name="cpu-upgrade", cores=4, memory_bytes=4 * GIB),
    FlavorSize(name="cpu-xl", cores=64, memory_bytes=64 * GIB),
)


@pytest.fixture
def runner() -> ScriptedRunner:
    return ScriptedRunner()


def total_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def launched(runner: ScriptedRunner) -> list[str]:
    """Return whose attempts were launched, the oldest job first."""
    return sorted(job_id for job_id, _ in runner.orders)


async def test_only_as_many_as_the_setting_allows_run_at_once(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=100, memory_bytes=100 * GIB, concurrent=2)
    supervisor = a_supervisor(database, runner)
    jobs = [await a_job(database) for _ in range(4)]

    await supervisor.step_all()

    assert launched(runner) == jobs[:2]
    assert [await status(database, job) for job in jobs[2:]] == [
        ("SCHEDULING", "waiting for capacity (0 before it)"),
        ("SCHEDULING", "waiting for capacity (1 before it)"),
    ]
    runner.end(jobs[1])
    await supervisor.step_all()
    await supervisor.step_all()
    assert launched(runner) == jobs[:3]
    assert await status(database, jobs[3]) == ("SCHEDULING", "waiting for capacity (0 before it)")


@pytest.mark.parametrize(
    ("cores", "memory"),
    [pytest.param(2.5, 100, id="cores"), pytest.param(100, 2.9, id="memory")],
)
async def test_only_as_many_as_fit_the_machine_run_at_once(
    database: Database, runner: ScriptedRunner, cores: float, memory: float
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=cores, memory_bytes=int(memory * GIB))
    supervisor = a_supervisor(database, runner)
    jobs = [await a_job(database) for _ in range(4)]

    await supervisor.step_all()
    await supervisor.step_all()

    assert launched(runner) == jobs[:2]


async def test_a_device_is_for_one_job_at_a_time_and_holds_up_nobody_else(
    database: Database, runner: ScriptedRunner
) -> None:
    cards = ("/dev/card0", "/dev/card1")
    flavors = (
        *FLAVORS,
        FlavorSize(name="t4-small", cores=1, memory_bytes=GIB, devices=cards[:1]),
        FlavorSize(name="l4x4", cores=1, memory_bytes=GIB, devices=cards),
    )
    room = {"flavors": flavors, "cores": 100, "memory_bytes": 100 * GIB}
    set_jobs(database, **room, shared_devices=("/dev/control",))
    supervisor = a_supervisor(database, runner)
    names = ["t4-small", "t4-small", "l4x4", "cpu-basic"]
    first, second, both, plain = [await a_job(database, flavor=name) for name in names]

    await supervisor.step_all()
    assert launched(runner) == [first, plain]
    runner.end(first)
    await supervisor.step_all()
    await supervisor.step_all()
    assert launched(runner) == sorted([first, second, plain])
    runner.end(second)
    await supervisor.step_all()
    await supervisor.step_all()

    assert launched(runner) == sorted([first, second, both, plain])
    orders = {job_id: runner.attempts[job_id, 1].order.devices for job_id in (both, plain)}
    assert orders == {both: (*cards, "/dev/control"), plain: ()}


async def test_a_small_job_does_not_pass_a_large_one(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=4, memory_bytes=100 * GIB)
    supervisor = a_supervisor(database, runner)
    first = await a_job(database)
    large = await a_job(database, flavor="cpu-upgrade")
    small = await a_job(database)

    await supervisor.step_all()
    assert launched(runner) == [first]
    runner.end(first)
    await supervisor.step_all()
    await supervisor.step_all()
    assert launched(runner) == [first, large]
    runner.end(large)
    await supervisor.step_all()
    await supervisor.step_all()
    assert launched(runner) == [first, large, small]


async def test_a_flavor_larger_than_the_machine_runs_alone(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=4, memory_bytes=8 * GIB)
    supervisor = a_supervisor(database, runner)
    large = await a_job(database, flavor="cpu-xl")
    small = await a_job(database)

    await supervisor.step_all()

    assert launched(runner) == [large]
    assert await status(database, small) == ("SCHEDULING", "waiting for capacity (0 before it)")


async def test_owners_take_turns(database: Database, runner: ScriptedRunner) -> None:
    set_jobs(database, flavors=FLAVORS, cores=100, memory_bytes=100 * GIB, concurrent=3)
    supervisor = a_supervisor(database, runner)
    of_ada = [await a_job(database) for _ in range(5)]
    of_bob = [await a_job(database, owner="bob") for _ in range(2)]

    await supervisor.step_all()

    assert set(launched(runner)) == {of_ada[0], of_bob[0], of_ada[1]}


async def test_who_has_less_at_work_comes_first(database: Database, runner: ScriptedRunner) -> None:
    set_jobs(database, flavors=FLAVORS, cores=100, memory_bytes=100 * GIB, concurrent=3)
    supervisor = a_supervisor(database, runner)
    of_ada = [await a_job(database) for _ in range(5)]
    await supervisor.step_all()
    of_bob = [await a_job(database, owner="bob") for _ in range(2)]
    await supervisor.step_all()
    assert await status(database, of_bob[0]) == (
        "SCHEDULING",
        "waiting for capacity (0 before it)",
    )
    runner.end(of_ada[0])
    await supervisor.step_all()
    await supervisor.step_all()

    assert launched(runner) == [*of_ada[:3], of_bob[0]]


async def test_an_attempt_keeps_its_place_until_it_is_cleared_away(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, concurrent=1)
    supervisor = a_supervisor(database, runner)
    first, second = [await a_job(database) for _ in range(2)]
    await supervisor.step_all()
    runner.cannot_remove = True
    runner.end(first)
    await supervisor.step_all()
    assert await status(database, first) == ("COMPLETED", None)
    await supervisor.step_all()
    assert launched(runner) == [first]

    runner.cannot_remove = False
    await supervisor.sweep()
    await supervisor.step_all()

    assert launched(runner) == [first, second]


async def test_what_cannot_be_cleared_away_blocks_nobody_for_ever(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, concurrent=1)
    supervisor = a_supervisor(database, runner)
    first, second = [await a_job(database) for _ in range(2)]
    await supervisor.step_all()
    runner.cannot_remove = True
    runner.end(first)
    await supervisor.step_all()
    clock.move(timedelta(seconds=61))
    await supervisor.step_all()

    assert launched(runner) == [first, second]


async def test_a_job_that_waits_to_be_tried_again_holds_no_place(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, concurrent=1)
    supervisor = a_supervisor(database, runner)
    first = await a_job(database, attempts=2)
    await supervisor.step_all()
    runner.end(first, exit_code=1)
    await supervisor.step_all()
    second = await a_job(database)
    await supervisor.step_all()

    assert launched(runner) == [first, second]
    clock.move(timedelta(seconds=5))
    await supervisor.step_all()
    assert await status(database, first) == ("SCHEDULING", "attempt 2 of 2 after exit code 1")


async def a_member(
    database: Database, group: str = "train", *, owner: str = "ada", flavor: str = "cpu-basic"
) -> str:
    return await a_job(database, owner, flavor=flavor, network={"group": group})


async def test_a_network_group_begins_together_on_two_cores(
    database: Database, runner: ScriptedRunner
) -> None:
    half = FlavorSize(name="cpu-basic", cores=2, memory_bytes=total_memory() // 2)
    set_jobs(database, flavors=(half,), cores=2)
    supervisor = a_supervisor(database, runner)
    members = [await a_member(database) for _ in range(3)]

    await supervisor.step_all()

    assert launched(runner) == members


async def test_a_member_overtakes_those_who_wait_for_its_group(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=1)
    supervisor = a_supervisor(database, runner)
    first = await a_member(database)
    await supervisor.step_all()
    lone = await a_job(database)
    larger = await a_member(database, flavor="cpu-upgrade")
    await supervisor.step_all()

    assert launched(runner) == [first, larger]
    assert await status(database, lone) == ("SCHEDULING", "waiting for capacity (0 before it)")


async def test_a_group_takes_the_cores_of_its_largest_member(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=5)
    supervisor = a_supervisor(database, runner)
    flavors = ["cpu-basic", "cpu-upgrade", "cpu-basic"]
    members = [await a_member(database, flavor=flavor) for flavor in flavors]
    fits, waits = [await a_job(database) for _ in range(2)]

    await supervisor.step_all()

    assert launched(runner) == sorted([*members, fits])
    runner.end(members[1])
    await supervisor.step_all()
    await supervisor.step_all()
    assert waits in launched(runner)


@pytest.mark.parametrize(
    ("owner", "group"),
    [pytest.param("bob", "train", id="of another owner"), pytest.param("ada", "test", id="other")],
)
async def test_only_members_of_one_group_share(
    database: Database, runner: ScriptedRunner, owner: str, group: str
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=1)
    supervisor = a_supervisor(database, runner)
    first = await a_member(database)
    await a_member(database, group, owner=owner)

    await supervisor.step_all()

    assert launched(runner) == [first]


@pytest.mark.parametrize(
    "limit", [{"concurrent": 2}, {"memory_bytes": 2 * GIB}], ids=["jobs", "memory"]
)
async def test_what_the_settings_limit_is_not_shared(
    database: Database, runner: ScriptedRunner, limit: dict[str, int]
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=1, **limit)
    supervisor = a_supervisor(database, runner)
    members = [await a_member(database) for _ in range(3)]

    await supervisor.step_all()

    assert launched(runner) == members[:2]


async def test_two_supervisors_give_each_place_away_once(
    database: Database, runner: ScriptedRunner
) -> None:
    set_jobs(database, flavors=FLAVORS, cores=100, memory_bytes=100 * GIB, concurrent=3)
    jobs = [await a_job(database) for _ in range(6)]
    supervisors = [a_supervisor(database, runner) for _ in range(3)]

    await asyncio.gather(*(supervisor.step_all() for supervisor in supervisors))

    assert sorted(runner.orders.values()) == [1, 1, 1]
    begun = [job for job in jobs if await attempts(database, job)]
    assert begun == jobs[:3]
