"""What attempts use is kept by the worker that looks after them, whoever looks at it."""

import pytest

from hublet.core.database import Database
from hublet.jobs.metrics import UsageHistory, history_path, read_history
from hublet.jobs.records import Flavor, Usage
from hublet.runtime import attempt_processes
from hublet.runtime.attempt_processes import UsageSample, usage_between
from hublet.runtime.supervisor import sampler
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor

BUSY = Usage(cpu_millicores=700, memory_bytes=2**20)


def kept(database: Database, job_id: str) -> UsageHistory | None:
    return read_history(history_path(database.hub.settings.database.data_dir, job_id))


async def a_running_job(database: Database, runner: ScriptedRunner) -> str:
    job_id = await a_job(database)
    folder = history_path(database.hub.settings.database.data_dir, job_id).parent
    folder.mkdir(parents=True)
    return job_id


async def test_samples_are_kept_while_a_job_runs_across_workers_and_after_its_end(
    database_with_room: Database, runner: ScriptedRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, moments = database_with_room, iter(range(10**15, 10**15 + 10**9, 5_000_000))
    monkeypatch.setattr(sampler, "micros", lambda: next(moments))
    job_id = await a_running_job(database, runner)
    runner.usages[job_id] = BUSY
    first = a_supervisor(database, runner)
    await first.step_all()
    runner.begin(job_id)
    await first.step_all()
    await first.sample()
    async with database.transaction() as conn:
        await first.hand_back(conn)

    second = a_supervisor(database, runner)
    await second.step_all()
    await second.sample()
    runner.usages[job_id] = None
    await second.sample()
    runner.end(job_id)
    await second.step_all()
    await second.sample()

    history = kept(database, job_id)
    assert history is not None
    assert [sample.usage.memory_bytes for sample in history.samples] == [
        pytest.approx(2**20, rel=1e-3)
    ] * 2
    size = sampler.flavor_size(Flavor.cpu_basic, database.hub.settings)
    assert history.limits.memory_bytes == size.memory_bytes
    assert history.limits.cpu_millicores == round(size.cores * 1000)


async def test_a_runner_that_fails_and_a_job_that_is_deleted_stop_no_other_sample(
    database_with_room: Database, runner: ScriptedRunner
) -> None:
    database = database_with_room
    deleted, measured, broken = [await a_running_job(database, runner) for _ in range(3)]
    runner.usages = {deleted: BUSY, measured: BUSY, broken: OSError("The engine is away.")}
    supervisor = a_supervisor(database, runner)
    await supervisor.step_all()
    history_path(database.hub.settings.database.data_dir, deleted).parent.rmdir()

    await supervisor.sample()

    assert kept(database, deleted) is None
    assert kept(database, broken) is None
    history = kept(database, measured)
    assert history is not None
    assert len(history.samples) == 1


def test_rates_are_what_came_between_two_samples() -> None:
    before = UsageSample(at=10, cpu_micros=0, memory_bytes=5, disk_bytes=100, received_bytes=7)
    after = UsageSample(
        at=15,
        cpu_micros=2_500_000,
        memory_bytes=6,
        disk_bytes=1100,
        received_bytes=3,
        sent_bytes=50,
    )

    assert usage_between(None, after) == Usage(cpu_millicores=0, memory_bytes=6)
    # A process that has gone takes its counts with it.
    assert usage_between(before, after) == Usage(
        cpu_millicores=500, memory_bytes=6, disk_per_second=200, sent_per_second=10
    )


def test_disk_and_network_are_read_from_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    table = b"Inter-|\n face |\n    lo: 9 1 0 0 0 0 0 0 9 1 0\n  eth0: 70 1 0 0 0 0 0 0 30 1 0\n"
    files = {"/proc/7/io": b"rchar: 1\nread_bytes: 20\nwrite_bytes: 4\n", "/proc/7/net/dev": table}
    monkeypatch.setattr(attempt_processes, "read", lambda path: files.get(path, b""))
    monkeypatch.setattr(attempt_processes, "_network_of", lambda pid: f"net:[{pid}]")

    assert attempt_processes.process_disk(7) == 24
    assert attempt_processes.network_bytes([7]) == (70, 30)

    monkeypatch.setattr(attempt_processes, "_network_of", lambda pid: "net:[1]")
    assert attempt_processes.network_bytes([7]) == (0, 0)
