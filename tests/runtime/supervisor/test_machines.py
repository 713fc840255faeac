"""Jobs on several machines, each with a data folder of its own, on one database."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Database
from hublet.core.leases import lease_clock
from hublet.core.machine import FOLDER_ID_FILE, identify, load_folder_id
from hublet.runtime.errors import CannotRunYet
from hublet.runtime.supervisor import cleanup, machines, machines_store
from hublet.runtime.supervisor.supervisor import Supervisor
from jobs.jobs_api import set_row
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import (
    a_job,
    a_supervisor,
    attempts,
    cancel,
    set_jobs,
    status,
)

GIB = 2**30
SMALL = FlavorSize(name="cpu-basic", cores=1, memory_bytes=GIB)
LARGE = FlavorSize(name="cpu-upgrade", cores=8, memory_bytes=GIB)
LEASE_SECONDS = 180.0


@dataclass(slots=True)
class Machine:
    """A machine with one worker."""

    supervisor: Supervisor
    runner: ScriptedRunner

    async def step(self) -> None:
        await self.supervisor.machine.renew_when_due()
        await self.supervisor.step_all()


MachineMaker = Callable[..., Machine]


@pytest.fixture
def a_machine(database_with_room: Database, tmp_path: Path) -> MachineMaker:
    """Return a function that makes a machine with this name and these settings of jobs."""
    database = database_with_room

    def make(
        name: str, *, folder: str | None = None, is_local: bool = True, **jobs: Any
    ) -> Machine:
        hub = database.hub
        settings = replace(
            hub.settings,
            database=replace(hub.settings.database, data_dir=tmp_path / (folder or name)),
            server=replace(hub.settings.server, node_name=name),
        )
        database.hub = replace(hub, settings=settings)
        set_jobs(database, **jobs)
        runner = ScriptedRunner(is_local=is_local)
        supervisor = a_supervisor(database, runner)
        database.hub = hub
        return Machine(supervisor=supervisor, runner=runner)

    return make


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that lets time pass for machines, and for nothing else."""
    passed = 0.0

    def pass_time(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        monkeypatch.setattr(machines, "monotonic", lambda: monotonic() + passed)
        for module in (machines, machines_store, cleanup):
            monkeypatch.setattr(
                module, "lease_clock", lambda: lease_clock() + round(passed * 1_000_000)
            )

    return pass_time


async def lose_worker(database: Database, job_id: str) -> None:
    """Let the lease of the worker on a job end, as that of one that was killed does."""
    await set_row(database, job_id, claimed_by=None, claimed_until=None)


async def test_a_job_of_another_machine_is_left_alone_until_its_lease_ends(
    database: Database, a_machine: MachineMaker, wait: Callable[[float], None]
) -> None:
    first, second = a_machine("first"), a_machine("second")
    job_id = await a_job(database, attempts=2)
    await first.step()
    first.runner.begin(job_id)
    await first.step()
    await lose_worker(database, job_id)

    await second.step()
    wait(LEASE_SECONDS * 0.9)
    await second.step()
    assert await status(database, job_id) == ("RUNNING", None)
    wait(LEASE_SECONDS * 0.2)
    await second.step()

    stage, message = await status(database, job_id)
    assert stage == "SCHEDULING"
    assert message is not None
    assert "its machine first gives no sign of life" in message
    await set_row(database, job_id, due_at=1)
    await second.step()
    assert second.runner.begun == {(job_id, 2): 1}


async def test_a_machine_that_comes_back_ends_the_attempt_that_its_job_went_on_without(
    database: Database, a_machine: MachineMaker, wait: Callable[[float], None]
) -> None:
    first, second = a_machine("first"), a_machine("second")
    job_id = await a_job(database, attempts=2)
    await first.step()
    first.runner.begin(job_id)
    await first.step()
    await second.step()
    await lose_worker(database, job_id)
    wait(LEASE_SECONDS * 0.9)
    await second.step()
    wait(LEASE_SECONDS * 0.2)
    await second.step()

    await first.step()
    await first.supervisor.sweep()

    assert first.runner.attempts[job_id, 1].stops == 1
    await first.supervisor.sweep()
    assert first.runner.removed == [f"{job_id}/1"]
    assert (await attempts(database, job_id))[0]["removed_at"] is not None


async def test_the_own_worker_of_a_machine_goes_on_with_its_job(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = a_machine("first"), a_machine("second")
    job_id = await a_job(database)
    await first.step()
    await lose_worker(database, job_id)
    again = a_machine("first")
    again.runner.attempts = first.runner.attempts

    await second.step()
    await again.step()
    first.runner.end(job_id)
    await again.step()

    assert await status(database, job_id) == ("COMPLETED", None)
    assert second.runner.orders == {}


async def test_a_worker_that_has_just_come_itself_judges_no_other_machine(
    database: Database, a_machine: MachineMaker, wait: Callable[[float], None]
) -> None:
    first = a_machine("first")
    job_id = await a_job(database, attempts=2)
    await first.step()
    first.runner.begin(job_id)
    await first.step()
    await lose_worker(database, job_id)
    wait(LEASE_SECONDS * 10)

    await a_machine("second").step()

    assert await status(database, job_id) == ("RUNNING", None)


async def test_after_an_outage_every_machine_has_the_length_of_a_lease_to_come_back(
    database: Database, a_machine: MachineMaker, wait: Callable[[float], None]
) -> None:
    first, second = a_machine("first"), a_machine("second")
    job_id = await a_job(database, attempts=2)
    await first.step()
    first.runner.begin(job_id)
    await first.step()
    await second.step()
    await lose_worker(database, job_id)
    wait(LEASE_SECONDS * 10)

    await second.step()
    assert await status(database, job_id) == ("RUNNING", None)
    await first.step()
    wait(LEASE_SECONDS * 0.5)
    await second.step()
    await first.step()
    wait(LEASE_SECONDS * 0.6)
    await second.step()

    assert await status(database, job_id) == ("RUNNING", None)


async def test_a_launch_that_may_have_begun_elsewhere_is_not_repeated_here(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = a_machine("first"), a_machine("second")
    job_id = await a_job(database)
    await first.supervisor.machine.renew()
    await first.supervisor.claim()
    await lose_worker(database, job_id)

    await second.step()

    assert second.runner.orders == {}


async def test_what_cannot_begin_on_one_machine_begins_on_another(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = a_machine("first"), a_machine("second")
    first.runner.refusal = CannotRunYet("the image is not here")
    job_id = await a_job(database)
    await first.step()
    await set_row(database, job_id, due_at=1)

    await second.step()

    assert second.runner.begun == {(job_id, 1): 1}


async def test_machines_that_share_a_folder_look_after_each_others_jobs(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = a_machine("first", folder="shared"), a_machine("second", folder="shared")
    job_id = await a_job(database)
    await first.step()
    await lose_worker(database, job_id)
    second.runner.attempts = first.runner.attempts
    first.runner.end(job_id)

    await second.step()

    assert await status(database, job_id) == ("COMPLETED", None)


async def test_what_an_engine_has_is_looked_after_from_every_machine(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = (a_machine(name, is_local=False) for name in ("first", "second"))
    job_id = await a_job(database)
    await first.step()
    await lose_worker(database, job_id)
    second.runner.attempts = first.runner.attempts
    first.runner.end(job_id)

    await second.step()

    assert await status(database, job_id) == ("COMPLETED", None)


async def test_a_cancellation_waits_for_the_machine_of_the_job_and_no_longer_than_promised(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = a_machine("first"), a_machine("second")
    job_id = await a_job(database)
    await first.step()
    first.runner.begin(job_id)
    await first.step()
    await lose_worker(database, job_id)
    await cancel(database, job_id)

    await second.step()
    assert await status(database, job_id) == ("RUNNING", None)
    await set_row(database, job_id, cancel_requested_at=1)
    await second.step()

    assert (await status(database, job_id))[0] == "CANCELED"
    await first.step()
    await first.supervisor.sweep()
    assert first.runner.attempts[job_id, 1].stops == 1


async def test_each_machine_has_room_of_its_own(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = (a_machine(name, concurrent=1) for name in ("first", "second"))
    jobs = [await a_job(database) for _ in range(3)]

    for machine in (first, second, first, second):
        await machine.step()

    assert list(first.runner.begun) == [(jobs[0], 1)]
    assert list(second.runner.begun) == [(jobs[1], 1)]
    assert await status(database, jobs[2]) == ("SCHEDULING", "waiting for capacity (0 before it)")


async def test_owners_take_turns_over_all_machines(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = (a_machine(name, concurrent=1) for name in ("first", "second"))
    await a_job(database, "ada")
    await first.step()
    await a_job(database, "ada")
    of_bob = await a_job(database, "bob")

    await second.step()

    assert list(second.runner.begun) == [(of_bob, 1)]


async def test_a_job_waits_for_the_machine_that_is_large_enough(
    database: Database, a_machine: MachineMaker
) -> None:
    small = a_machine("small", flavors=(SMALL, LARGE), cores=2)
    large = a_machine("large", flavors=(SMALL, LARGE), cores=8)
    await large.step()
    set_jobs(database, flavors=(SMALL, LARGE))
    job_id = await a_job(database, flavor="cpu-upgrade")

    await small.step()
    assert small.runner.orders == {}
    await large.step()

    assert list(large.runner.begun) == [(job_id, 1)]


async def test_a_job_of_a_flavor_that_only_another_machine_has_is_not_refused(
    database: Database, a_machine: MachineMaker
) -> None:
    without = a_machine("without", flavors=(SMALL,))
    having = a_machine("having", flavors=(SMALL, LARGE))
    await having.step()
    set_jobs(database, flavors=(SMALL, LARGE))
    job_id = await a_job(database, flavor="cpu-upgrade")

    await without.step()
    await having.step()

    assert list(having.runner.begun) == [(job_id, 1)]


async def test_a_network_group_stays_on_one_machine(
    database: Database, a_machine: MachineMaker
) -> None:
    first, second = a_machine("first", concurrent=1), a_machine("second")
    group = {"network": {"group": "trainers"}}
    member = await a_job(database, **group)
    await first.step()
    other = await a_job(database, **group)

    await second.step()
    assert second.runner.orders == {}
    first.runner.end(member)
    await first.step()
    await first.step()

    assert (other, 1) in first.runner.begun


async def test_a_machine_that_nobody_expects_back_is_forgotten(
    database: Database, a_machine: MachineMaker, wait: Callable[[float], None]
) -> None:
    first, second = a_machine("first"), a_machine("second")
    await first.step()
    wait(8 * 24 * 3600)
    await second.step()

    await second.supervisor.sweep()

    async with database.read() as conn:
        assert [each.name for each in await machines_store.list_machines(conn)] == ["second"]


def test_the_id_of_a_folder_moves_with_it(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    before = load_folder_id(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")

    assert load_folder_id(tmp_path / "new") == before
    assert (tmp_path / "new" / FOLDER_ID_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", [None, b"half of an i"])
def test_processes_that_start_together_find_one_id(tmp_path: Path, before: bytes | None) -> None:
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        if before is not None:
            (folder / FOLDER_ID_FILE).write_bytes(before)
        together = threading.Barrier(4)

        def load(folder: Path = folder, together: threading.Barrier = together) -> str:
            together.wait()
            return load_folder_id(folder)

        with ThreadPoolExecutor(4) as pool:
            found = {each.result() for each in [pool.submit(load) for _ in range(4)]}

        assert found == {(folder / FOLDER_ID_FILE).read_text().strip()}


def test_two_hosts_with_one_folder_are_two_machines(database: Database) -> None:
    settings = database.hub.settings
    one, other = (
        identify(replace(settings, server=replace(settings.server, node_name=name)))
        for name in ("one", "other")
    )

    assert one.folder_id == other.folder_id
    assert one.id != other.id
