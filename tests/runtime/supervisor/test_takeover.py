"""Attempts of an engine that a worker with another data folder takes over, as in every upgrade of the chart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("lightkube", reason="hublet[kubernetes] is not installed")

from hublet.core.config.settings import StorageSettings
from hublet.core.database import Database, open_database
from hublet.core.ids import new_object_id
from hublet.jobs.logs.lines import LogLines
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.logs.source import local_log
from hublet.jobs.logs.store import list_parts
from hublet.jobs.logs.watcher import find_log
from hublet.runtime.kubernetes import log_follower
from hublet.runtime.kubernetes.runner import KubernetesRunner
from hublet.runtime.supervisor import stepper
from hublet.runtime.supervisor.supervisor import Supervisor
from jobs.jobs_api import run, set_row
from patience import SOON_SECONDS
from people import Headers
from runtime.kubernetes.local_pods import LocalCluster, LocalPod, a_cluster, a_runner
from runtime.supervisor.supervised_jobs import attempts, cancel, status
from runtime.volumes.mounts import a_bucket, bucket, in_bucket, put_file

LOST = "volumes[0]: ada/box was not written back: What the job has written is not on this machine."


@dataclass(slots=True)
class Worker:
    """A worker in a pod of the hub, whose data folder goes with it."""

    database: Database
    runner: KubernetesRunner
    supervisor: Supervisor

    async def step(self) -> None:
        await self.supervisor.machine.renew_when_due()
        with suppress(OSError):
            await self.supervisor.step_all()
        await self.supervisor.ship_logs()

    async def step_until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(SOON_SECONDS):
            while not await is_so():
                await self.step()
                await asyncio.sleep(0.01)

    async def step_until_over(self, job_id: str) -> None:
        async def is_over() -> bool:
            return (await status(self.database, job_id))[0] not in {"SCHEDULING", "RUNNING"}

        await self.step_until(is_over)

    async def step_until_begun(self, job_id: str) -> None:
        async def is_running() -> bool:
            return (await status(self.database, job_id))[0] == "RUNNING"

        await self.step_until(is_running)

    async def step_until_shipped(self, job_id: str, *, lines: int) -> None:
        async def is_shipped() -> bool:
            async with self.database.read() as conn:
                return sum(part.lines for part in await list_parts(conn, job_id)) == lines

        await self.step_until(is_shipped)

    async def step_until_launched(self, job_id: str) -> None:
        """Until there is a pod, which nobody has filled."""

        async def is_launched() -> bool:
            return bool((await attempts(self.database, job_id))[0]["handle"])

        await self.step()
        await self.step_until(is_launched)

    async def die(self, job_id: str) -> None:
        """End without a word; the lease on the job ends later."""
        await self.supervisor.abandon()
        await self.runner.close()
        await set_row(self.database, job_id, claimed_by=None, claimed_until=None)


@dataclass(slots=True)
class Hub:
    """A hub whose workers have data folders of their own, and the cluster that runs its jobs."""

    database: Database
    cluster: LocalCluster
    folder: Path
    stack: AsyncExitStack
    has_store: bool = True

    async def start_worker(self, name: str) -> Worker:
        settings = self.database.hub.settings
        # The content of the hub is where the tests put it, which is the folder of no worker.
        url = f"file://{settings.database.data_dir}" if self.has_store else None
        data_dir = self.folder / name if self.has_store or name != "one" else None
        place = replace(
            settings.database,
            data_dir=data_dir or settings.database.data_dir,
            url=settings.database_url,
        )
        settings = replace(
            settings,
            database=place,
            storage=StorageSettings(url=url),
            jobs=replace(settings.jobs, cores=1000, memory_bytes=2**50),
            server=replace(settings.server, node_name=name),
        )
        hub = replace(self.database.hub, settings=settings)
        database = await self.stack.enter_async_context(open_database(hub))
        runner = a_runner(self.cluster, place.data_dir)
        self.stack.push_async_callback(runner.close)
        supervisor = Supervisor(database, new_object_id(), runner)
        return Worker(database=database, runner=runner, supervisor=supervisor)

    def pod(self) -> LocalPod:
        (pod,) = self.cluster.pods.values()
        return pod


@pytest.fixture
async def hub(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hub]:
    cluster = a_cluster(tmp_path / "pods", monkeypatch)
    async with AsyncExitStack() as stack:
        yield Hub(database=database, cluster=cluster, folder=tmp_path / "workers", stack=stack)


async def a_job(client: httpx2.AsyncClient, who: Headers, **body: Any) -> str:
    created = await run(client, who, **body)
    return str(created["id"])


async def log_of(worker: Worker, job_id: str) -> list[str]:
    """The log as any node reads it, without the line that begins it."""
    async with worker.database.read() as conn:
        log = await find_log(conn, job_id)
    lines = LogLines().read(log, 1, count=10**5, most_bytes=10**8).lines
    texts = [line.text for line in lines]
    assert [text for text in texts if text.startswith("===== Job started at ")] == texts[:1]
    return texts[1:]


async def change_files(client: httpx2.AsyncClient, ada: Headers, pod: LocalPod) -> None:
    """What the job does with its bucket, and what somebody else does meanwhile."""
    (pod.root / "0" / "new").write_text("new")
    (pod.root / "0" / "old").write_text("changed")
    (pod.root / "0" / "gone").unlink()
    await put_file(client, ada, "theirs", "replaced")
    await put_file(client, ada, "added", "by somebody")


async def a_changed_bucket(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> tuple[str, Worker]:
    """Return a job that runs and has changed its bucket, and its worker."""
    await a_bucket(client, ada, same="1", old="2", gone="3", theirs="4")
    job_id = await a_job(client, ada, volumes=[bucket()])
    one = await hub.start_worker("one")
    await one.step_until_begun(job_id)
    await change_files(client, ada, hub.pod())
    return job_id, one


WRITTEN = {
    "same": "1",
    "old": "changed",
    "new": "new",
    "theirs": "replaced",
    "added": "by somebody",
}


async def test_what_a_job_has_written_is_in_its_bucket_whoever_sees_its_end(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    job_id, one = await a_changed_bucket(client, ada, hub)
    await one.die(job_id)
    hub.pod().end()

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    assert await status(two.database, job_id) == ("COMPLETED", None)
    assert await in_bucket(client, ada) == WRITTEN
    assert hub.cluster.pods == {}


@pytest.mark.parametrize("step", ["write_back", "transition"])
async def test_a_worker_that_dies_while_it_writes_back_loses_nothing(
    client: httpx2.AsyncClient,
    ada: Headers,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    job_id, one = await a_changed_bucket(client, ada, hub)
    hub.pod().end()
    died = asyncio.Event()

    async def die(*_: object, **__: object) -> None:
        died.set()
        raise OSError("killed")

    async def has_died() -> bool:
        return died.is_set()

    with monkeypatch.context() as patched:
        patched.setattr(stepper, step, die)
        await one.step_until(has_died)
        await one.die(job_id)

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    assert await status(two.database, job_id) == ("COMPLETED", None)
    assert await in_bucket(client, ada) == WRITTEN
    assert await log_of(two, job_id) == []


async def test_without_a_shared_store_files_come_back_all_the_same(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    hub.has_store = False
    job_id, one = await a_changed_bucket(client, ada, hub)
    hub.pod().prints("a line")
    await one.die(job_id)
    hub.pod().end()

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    assert await status(two.database, job_id) == ("COMPLETED", None)
    listed = await client.get("/api/buckets/ada/box/tree", headers=ada)
    assert [each["path"] for each in listed.json()] == sorted(WRITTEN)
    assert await log_of(two, job_id) == ["a line"]


@pytest.mark.parametrize("exit_code", [0, 3])
async def test_files_that_cannot_be_written_back_are_no_good_end(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub, exit_code: int
) -> None:
    """A pod of an older version has no snapshot."""
    job_id, one = await a_changed_bucket(client, ada, hub)
    await one.die(job_id)
    (hub.pod().root / "0.json").unlink()
    hub.pod().prints("a line")
    hub.pod().end(exit_code)

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    stage, message = await status(two.database, job_id)
    assert stage == ("ERROR" if exit_code else "COMPLETED")
    assert message == (f"exit code 3; {LOST}" if exit_code else LOST)
    assert await log_of(two, job_id) == ["a line", LOST]


async def test_a_volume_that_the_cluster_has_lost_is_told_by_its_first_worker_too(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.runtime.kubernetes.runner._PAUSE_SECONDS", 0)
    job_id, one = await a_changed_bucket(client, ada, hub)
    hub.cluster.failure = OSError("the node is gone")
    hub.pod().end()

    await one.step_until_over(job_id)

    assert await status(one.database, job_id) == ("COMPLETED", LOST)
    told = "===== The cluster lost one of its volumes: the node is gone ====="
    assert await log_of(one, job_id) == [told, LOST]


async def test_volumes_that_were_not_filled_yet_are_prepared_by_the_next_worker(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    await a_bucket(client, ada, a="1", b="2")
    job_id = await a_job(client, ada, volumes=[bucket()])
    one = await hub.start_worker("one")
    hub.cluster.failure = OSError("the connection broke")
    await one.step_until_launched(job_id)
    await one.die(job_id)
    # Not what the first worker has prepared, which must not count as deleted by the job.
    await put_file(client, ada, "c", "3")
    hub.cluster.failure = None

    two = await hub.start_worker("two")
    await two.step_until_begun(job_id)
    root = hub.pod().root
    assert {path.name: path.read_text() for path in (root / "0").iterdir()} == {
        "a": "1",
        "b": "2",
        "c": "3",
    }
    (root / "0" / "a").unlink()
    hub.pod().end()
    await two.step_until_over(job_id)

    assert await status(two.database, job_id) == ("COMPLETED", None)
    assert await in_bucket(client, ada) == {"b": "2", "c": "3"}


async def test_a_source_that_is_gone_ends_the_job_that_waits_for_it(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    await a_bucket(client, ada, a="1")
    job_id = await a_job(client, ada, volumes=[bucket()])
    one = await hub.start_worker("one")
    hub.cluster.failure = OSError("the connection broke")
    await one.step_until_launched(job_id)
    await one.die(job_id)
    await client.delete("/api/buckets/ada/box", headers=ada)
    hub.cluster.failure = None

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    stage, message = await status(two.database, job_id)
    assert stage == "ERROR"
    assert "ada/box" in (message or "")


async def test_a_job_is_canceled_while_its_volumes_are_prepared_anew(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_bucket(client, ada, a="1")
    job_id = await a_job(client, ada, volumes=[bucket()])
    one = await hub.start_worker("one")
    hub.cluster.failure = OSError("the connection broke")
    await one.step_until_launched(job_id)
    await one.die(job_id)
    asked = asyncio.Event()

    async def prepare_for_ever(*_: object, **__: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def is_asked() -> bool:
        return asked.is_set()

    monkeypatch.setattr("hublet.runtime.supervisor.launcher.prepare", prepare_for_ever)
    two = await hub.start_worker("two")
    await two.step_until(is_asked)
    await cancel(two.database, job_id)
    hub.pod().manifest["metadata"]["deletionTimestamp"] = "2026-11-19T10:00:00Z"
    await two.step_until_over(job_id)

    assert (await status(two.database, job_id))[0] == "CANCELED"


async def test_no_line_is_lost_when_the_node_has_rotated_what_was_shipped(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    job_id = await a_job(client, ada)
    one = await hub.start_worker("one")
    await one.step_until_begun(job_id)
    first = [f"line {number}" for number in range(1000)]
    hub.pod().prints(*first)

    await one.step_until_shipped(job_id, lines=1001)
    await one.die(job_id)
    del hub.pod().log[:-1]
    hub.pod().prints("more", "and more")

    two = await hub.start_worker("two")
    await two.step_until_begun(job_id)
    hub.pod().prints("last")
    hub.pod().end()
    await two.step_until_over(job_id)

    assert await log_of(two, job_id) == [*first, "more", "and more", "last"]


async def test_what_the_node_dropped_in_between_is_told(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    job_id = await a_job(client, ada)
    one = await hub.start_worker("one")
    await one.step_until_begun(job_id)
    hub.pod().prints("one", "two")

    await one.step_until_shipped(job_id, lines=3)
    await one.die(job_id)
    hub.pod().log.clear()
    later = "a long line behind which nobody would miss the first two"
    hub.pod().prints(later)
    hub.pod().end()

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    gap = log_follower._GAP.decode()  # noqa: SLF001 - its words
    assert await log_of(two, job_id) == ["one", "two", gap, later]


async def test_a_worker_that_comes_back_goes_on_after_what_the_other_has_shipped(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen a line that the other has not, so its file has other bytes in the same places."""
    monkeypatch.setattr("hublet.runtime.kubernetes.runner._PAUSE_SECONDS", 0)
    job_id = await a_job(client, ada)
    one = await hub.start_worker("one")
    await one.step_until_begun(job_id)
    hub.pod().prints("a")
    await one.step_until_shipped(job_id, lines=2)
    hub.pod().prints("b, which the node drops before the other worker sees it")
    file = local_log(job_folder(one.database.hub.settings.database.data_dir, job_id), 1)
    async with asyncio.timeout(SOON_SECONDS):
        while "b, which" not in file.read_text():
            await asyncio.sleep(0.01)
    hub.pod().log.clear()
    hub.pod().prints("c")
    await set_row(hub.database, job_id, claimed_by=None, claimed_until=None)
    two = await hub.start_worker("two")
    await two.step_until_shipped(job_id, lines=4)
    await two.die(job_id)

    await one.step()
    hub.pod().prints("d")
    hub.pod().end()
    await one.step_until_over(job_id)

    gap = log_follower._GAP.decode()  # noqa: SLF001 - its words
    assert await log_of(two, job_id) == ["a", gap, "c", "d"]


async def test_a_log_that_nobody_could_follow_to_its_end_says_so(
    client: httpx2.AsyncClient, ada: Headers, hub: Hub
) -> None:
    job_id = await a_job(client, ada)
    one = await hub.start_worker("one")
    await one.step_until_begun(job_id)
    hub.pod().prints("one")
    await one.step_until_shipped(job_id, lines=2)
    await one.die(job_id)
    hub.cluster.pods.clear()

    two = await hub.start_worker("two")
    await two.step_until_over(job_id)

    assert (await status(two.database, job_id))[0] == "ERROR"
    lost = "===== What it printed after this is lost with its machine ====="
    assert await log_of(two, job_id) == ["one", lost]
