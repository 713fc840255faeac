"""What attempts print goes to the shared store, where the nodes of other machines read it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hublet.core.config.settings import StorageSettings
from hublet.core.database import Connection, Database, open_database
from hublet.core.ids import new_object_id
from hublet.jobs import reactions
from hublet.jobs.logs import source
from hublet.jobs.logs import store as log_store
from hublet.jobs.logs.lines import LogLines
from hublet.jobs.logs.reader import job_folder, log_path, read_piece
from hublet.jobs.logs.routes import LogRequest, follow_log
from hublet.jobs.logs.source import JobLog, StoredLog, chunk_keys, local_log, size_of
from hublet.jobs.logs.watcher import LogWatcher, find_log
from hublet.jobs.metrics import UsageLimits, append_sample, find_history, history_path
from hublet.jobs.records import LogPart, Usage
from hublet.runtime.supervisor import log_shipper
from hublet.runtime.supervisor.log_shipper import LogShipper
from hublet.storage.object_store import ObjectKey, open_store
from jobs.log_lines import events_in, set_stage, write
from patience import SOON_SECONDS
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor, status
from scratch_database import wait_until


@asynccontextmanager
async def opened(database: Database, **storage: object) -> AsyncIterator[Database]:
    """Open the same database as another process of the hub does, with such a store."""
    settings = database.hub.settings
    jobs = replace(settings.jobs, cores=1000, memory_bytes=2**50)
    settings = replace(settings, storage=StorageSettings(**storage), jobs=jobs)  # type: ignore[arg-type]
    async with open_database(replace(database.hub, settings=settings)) as other:
        yield other


@pytest.fixture
async def shared(database: Database, tmp_path: Path) -> AsyncIterator[Database]:
    """The database as the processes of one machine know it, with a store that all machines have."""
    async with opened(database, url=f"file://{tmp_path}/shared") as shared:
        yield shared


@asynccontextmanager
async def elsewhere(database: Database, folder: Path) -> AsyncIterator[Database]:
    """Open the same database as another machine of the hub does."""
    settings = database.hub.settings
    place = replace(settings.database, data_dir=folder / "elsewhere", url=settings.database_url)
    hub = replace(database.hub, settings=replace(settings, database=place))
    async with open_database(hub) as other:
        yield other


async def log_elsewhere(database: Database, job_id: str, tmp_path: Path) -> JobLog:
    async with elsewhere(database, tmp_path) as other, other.read() as conn:
        return await find_log(conn, job_id)


def content(log: JobLog) -> str:
    size = size_of(log)
    lines = LogLines().read(log, 1, count=10**6, most_bytes=10**8)
    assert lines.total == len(lines.lines)
    assert lines.end == size
    return "".join(f"{line.text}\n" for line in lines.lines)


def prints(database: Database, job_id: str, text: str, *, attempt: int = 1) -> None:
    folder = job_folder(database.hub.settings.database.data_dir, job_id)
    stamped = "".join(f"1000 {line}\n" for line in text.splitlines())
    write(local_log(folder, attempt), stamped.encode())


async def parts_of(database: Database, job_id: str) -> list[LogPart]:
    async with database.read() as conn:
        return await log_store.list_parts(conn, job_id)


def objects_of(database: Database, job_id: str) -> set[str]:
    return {each.key.name for each in open_store(database.hub.settings).list("logs", f"{job_id}/")}


async def test_another_machine_reads_the_log_while_the_job_runs_and_after_it(
    shared: Database, runner: ScriptedRunner, tmp_path: Path
) -> None:
    job_id = await a_job(shared)
    supervisor = a_supervisor(shared, runner)
    await supervisor.step_all()
    runner.begin(job_id)
    await supervisor.step_all()
    order = runner.attempts[job_id, 1].order
    assert order.log == local_log(job_folder(tmp_path, job_id), 1)
    prints(shared, job_id, "one\ntwo\n")
    await supervisor.ship_logs()

    assert content(await log_elsewhere(shared, job_id, tmp_path)) == "one\ntwo\n"
    write(order.log, b"1001 three\n1001 without end")
    runner.end(job_id)
    await supervisor.step_all()

    assert (await status(shared, job_id))[0] == "COMPLETED"
    whole = "one\ntwo\nthree\nwithout end\n"
    assert content(await log_elsewhere(shared, job_id, tmp_path)) == whole
    [part] = await parts_of(shared, job_id)
    assert (part.lines, len(part.ends), part.notice) == (4, 1, None)


async def test_a_node_of_another_machine_follows_the_log_until_the_job_is_over(
    shared: Database, tmp_path: Path
) -> None:
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    heard: list[str] = []

    async def follow(other: Database) -> None:
        async with other.read() as conn:
            log = await find_log(conn, job_id)
        request = LogRequest(job_id=job_id, log=log, tail=None, is_over=False)
        stream = follow_log(
            LogWatcher(other), request, check_access=_may_see, stopping=asyncio.Event()
        )
        async for events in stream:
            heard.extend(event["data"] for event in events_in(events))

    async def has_heard(count: int) -> bool:
        return len(heard) >= count

    async with elsewhere(shared, tmp_path) as other, asyncio.timeout(SOON_SECONDS):
        following = asyncio.create_task(follow(other))
        for number in range(5):
            prints(shared, job_id, f"line {number}\n")
            await shipper.ship_all(at_once=True)
            await wait_until(partial(has_heard, number + 1))
        prints(shared, job_id, "last\n")
        await shipper.finish(job_id, 1)
        await set_stage(shared, job_id, "COMPLETED")
        await following

    assert heard == [*(f"line {number}" for number in range(5)), "last"]


async def _may_see() -> None:
    return


async def test_a_worker_that_dies_before_the_row_ships_again_and_no_line_is_doubled(
    shared: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    prints(shared, job_id, "one\ntwo\n")

    async def die(_conn: Connection, _part: LogPart, *, seen_size: int) -> bool:
        raise KeyError(seen_size)

    with monkeypatch.context() as patched:
        patched.setattr(log_store, "advance", die)
        with pytest.raises(KeyError):
            await shipper.ship_all(at_once=True)
    assert objects_of(shared, job_id)
    assert content(await log_elsewhere(shared, job_id, tmp_path)) == ""
    prints(shared, job_id, "three\n")

    again = await a_shipper(shared, job_id)
    await again.ship_all(at_once=True)
    # The first is not dead after all, and knows nothing of the other.
    prints(shared, job_id, "four\n")
    await shipper.ship_all(at_once=True)
    await shipper.ship_all(at_once=True)
    await again.finish(job_id, 1)
    await shipper.finish(job_id, 1)

    assert content(await log_elsewhere(shared, job_id, tmp_path)) == "one\ntwo\nthree\nfour\n"
    [part] = await parts_of(shared, job_id)
    await reactions.tidy_log(shared, {"job_id": job_id, "attempt": 1})
    assert objects_of(shared, job_id) == {key.name for key in chunk_keys(part)}


async def a_shipper(database: Database, job_id: str, attempt: int = 1) -> LogShipper:
    shipper = LogShipper(database)
    await shipper.begin(job_id, attempt)
    shipper.follow(job_id, attempt)
    return shipper


async def test_small_chunks_become_large_ones_and_lines_are_found_in_them(
    shared: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_MOST_SMALL", 5)
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    said: list[str] = []
    for number in range(12):
        said += [f"{number} {line} {'x' * 500}" for line in range(100)]
        prints(shared, job_id, "\n".join(said[-100:]))
        await shipper.ship_all(at_once=True)
    # One that is larger than a chunk.
    said += [f"{line} {'y' * 1000}" for line in range(5000)]
    prints(shared, job_id, "\n".join(said[-5000:]))
    await shipper.ship_all(at_once=True)
    await shipper.finish(job_id, 1)

    log = await log_elsewhere(shared, job_id, tmp_path)

    assert isinstance(log, StoredLog)
    [part] = log.parts
    assert len(part.ends) < 10
    assert content(log).splitlines() == said
    for first in (1, 600, 1201, 3000, 6190):
        found = LogLines().read(log, first, count=20).lines
        assert [line.text for line in found] == said[first - 1 : first + 19]
        assert found[0].number == first
    tail = LogLines().read_tail(log, count=3)
    assert [line.text for line in tail.lines] == said[-3:]
    assert LogLines().search(log, "1199 y", most=5).lines[0].number == 2400
    events, offset = "", 0
    while (piece := read_piece(log, offset, is_over=True)).events:
        events, offset = events + piece.events, piece.end
    assert events.count("data: ") == len(said)


async def test_attempts_on_several_machines_are_one_log_that_says_what_is_lost(
    shared: Database, tmp_path: Path
) -> None:
    job_id = await a_job(shared)
    first = await a_shipper(shared, job_id)
    prints(shared, job_id, "one\n")
    await first.ship_all(at_once=True)
    prints(shared, job_id, "never seen again\n")
    async with elsewhere(shared, tmp_path) as other:
        second = LogShipper(other)
        await second.finish(job_id, 1, is_cut=True)
        await second.begin(job_id, 2)
        second.follow(job_id, 2)
        prints(other, job_id, "two\nthree\n", attempt=2)
        await second.finish(job_id, 2)

    # The machine is back, and its worker goes on where it was.
    await first.ship_all(at_once=True)

    async with shared.read() as conn:
        log = await find_log(conn, job_id)
    lost = "===== What it printed after this is lost with its machine ====="
    assert content(log) == f"one\n{lost}\ntwo\nthree\n"
    tail = LogLines().read_tail(log, count=3).lines
    assert [(line.number, line.text) for line in tail] == [(2, lost), (3, "two"), (4, "three")]


async def test_a_log_that_its_machine_never_ended_says_so_after_a_while(
    shared: Database, runner: ScriptedRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await a_job(shared)
    supervisor = a_supervisor(shared, runner)
    await supervisor.step_all()
    runner.begin(job_id)
    await supervisor.step_all()
    prints(shared, job_id, "one\n")
    await supervisor.ship_logs()
    async with shared.transaction() as conn:
        await conn.execute(
            "UPDATE jobs SET stage = 'ERROR', finished_at = $2 WHERE id = $1",
            job_id,
            log_shipper.micros(),
        )
    async with elsewhere(shared, tmp_path) as other:
        await LogShipper(other).sweep()
        assert (await parts_of(shared, job_id))[0].ended_at is None
        later = log_shipper.micros() + 3_600_000_000
        monkeypatch.setattr(log_shipper, "micros", lambda: later)

        await LogShipper(other).sweep()

    [part] = await parts_of(shared, job_id)
    assert (part.ended_at, part.lines) == (later, 1)
    assert part.notice is not None
    assert "lost with its machine" in part.notice


async def test_a_deleted_job_leaves_nothing_in_the_store_nor_on_any_machine(
    shared: Database, tmp_path: Path
) -> None:
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    prints(shared, job_id, "one\n")
    keep_usage(shared, job_id)
    await shipper.finish(job_id, 1)
    assert objects_of(shared, job_id)
    log = await log_elsewhere(shared, job_id, tmp_path)
    await set_stage(shared, job_id, "DELETED")
    async with elsewhere(shared, tmp_path) as other:
        await reactions.remove_folder_of_job(other, {"job_id": job_id})

    await shipper.sweep()

    assert objects_of(shared, job_id) == set()
    assert not job_folder(shared.hub.settings.database.data_dir, job_id).exists()
    assert await parts_of(shared, job_id) == []
    # Who still reads it comes to its end.
    assert read_piece(log, 0, is_over=True).events == ""


def keep_usage(database: Database, job_id: str) -> None:
    path = history_path(database.hub.settings.database.data_dir, job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    limits = UsageLimits(cpu_millicores=1000, memory_bytes=2**30)
    append_sample(path, Usage(cpu_millicores=500, memory_bytes=2**20), limits, at=10**15)


async def test_kept_usage_is_seen_everywhere_and_goes_on_in_the_next_attempt(
    shared: Database, tmp_path: Path
) -> None:
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    keep_usage(shared, job_id)
    await shipper.ship_all(at_once=True)
    await shipper.finish(job_id, 1)
    here = history_path(shared.hub.settings.database.data_dir, job_id)
    assert not here.exists()

    log = await log_elsewhere(shared, job_id, tmp_path)

    history = find_history(tmp_path / "none", log)
    assert history is not None
    assert len(history.samples) == 1
    assert len([name for name in objects_of(shared, job_id) if "/usage/" in name]) == 1
    await shipper.begin(job_id, 2)
    assert here.exists()


async def test_a_log_from_before_the_store_is_shipped_when_its_job_is_over(
    database: Database, tmp_path: Path
) -> None:
    job_id = await a_job(database)
    path = log_path(database.hub.settings.database.data_dir, job_id)
    write(path, b"1 one\n2 two\n")
    await set_stage(database, job_id, "COMPLETED")
    async with opened(database, url=f"file://{tmp_path}/shared") as shared:
        async with shared.read() as conn:
            assert await find_log(conn, job_id) == path

        await LogShipper(shared).sweep()

        assert content(await log_elsewhere(shared, job_id, tmp_path)) == "one\ntwo\n"


async def test_files_go_once_their_readers_have_heard_that_the_store_has_them(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    prints(shared, job_id, "one\n")
    await shipper.finish(job_id, 1)
    await set_stage(shared, job_id, "COMPLETED")
    folder = job_folder(shared.hub.settings.database.data_dir, job_id)
    await shipper.sweep()
    assert local_log(folder, 1).exists()

    later = log_shipper.micros() + 3_600_000_000
    monkeypatch.setattr(log_shipper, "micros", lambda: later)
    await shipper.sweep()

    assert not folder.exists()


async def test_what_no_log_names_is_swept_after_two_days(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await a_job(shared)
    shipper = await a_shipper(shared, job_id)
    prints(shared, job_id, "one\n")
    await shipper.finish(job_id, 1)
    named, objects = objects_of(shared, job_id), open_store(shared.hub.settings)
    left = [f"{job_id}/1/0-99", f"{new_object_id()}/1/0-5"]
    for name in left:
        objects.put_bytes(ObjectKey("logs", name), b"x")
    await reactions.sweep_logs(shared, {})
    assert listed(shared) == named | set(left)

    monkeypatch.setattr(reactions, "_UNCOUNTED", -reactions._INTERVAL)  # noqa: SLF001 - all is old
    await reactions.sweep_logs(shared, {})

    assert listed(shared) == named


def listed(database: Database) -> set[str]:
    found: Sequence[str] = [
        each.key.name for each in open_store(database.hub.settings).list("logs")
    ]
    return set(found)
