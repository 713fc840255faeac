"""Workers are killed while they ship a log to a bucket: no line is lost, none doubled, all in order."""

import asyncio
import os
import random
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hublet.core.database import Database
from hublet.core.startup import open_hub
from hublet.jobs import reactions
from hublet.jobs.logs.lines import LogLines
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.logs.source import StoredLog, chunk_keys, local_log
from hublet.jobs.logs.watcher import find_log
from hublet.runtime.supervisor.log_shipper import LogShipper
from hublet.storage.object_store import open_store
from object_storage import CREDENTIALS
from processes import Place, run_hublet
from runtime.supervisor.supervised_jobs import a_job

# On each engine; `HUBLET_LOG_KILLS=100` makes it a hundred.
KILLS = int(os.environ.get("HUBLET_LOG_KILLS", "10"))

T = TypeVar("T")
PROGRAM = Path(__file__).with_name("log_shipping.py")


def test_no_kill_loses_or_doubles_a_line(place: Place, bucket_url: str) -> None:
    assert run_hublet("migrate", *place.flags, folder=place.folder).returncode == 0
    job_id = asyncio.run(_with_store(place, bucket_url, _a_job))
    path = local_log(job_folder(place.data_dir, job_id), 1)
    path.parent.mkdir(parents=True)
    stop, said = threading.Event(), list[str]()
    writer = threading.Thread(target=_write, args=(path, said, stop))
    writer.start()
    chance = random.Random(7)
    try:
        for _ in range(KILLS):
            _ship_and_kill(place, bucket_url, job_id, lines=chance.randint(1, 12))
    finally:
        stop.set()
        writer.join()

    async def finish(database: Database) -> None:
        await LogShipper(database).finish(job_id, 1)
        path.unlink()
        async with database.read() as conn:
            log = await find_log(conn, job_id)
        found = LogLines().read(log, 1, count=10**7, most_bytes=10**9)
        assert [line.text for line in found.lines] == said
        assert found.total == len(said)
        await reactions.tidy_log(database, {"job_id": job_id, "attempt": 1})
        assert isinstance(log, StoredLog)
        objects = open_store(database.hub.settings).list("logs", f"{job_id}/")
        assert {each.key for each in objects} == set(chunk_keys(log.parts[0]))

    asyncio.run(_with_store(place, bucket_url, finish))


async def _a_job(database: Database) -> str:
    return await a_job(database)


async def _with_store(place: Place, url: str, work: Callable[[Database], Awaitable[T]]) -> T:
    settings = place.settings
    storage = replace(settings.storage, url=url)
    async with open_hub(replace(settings, storage=storage)) as database:
        return await work(database)


def _write(path: Path, said: list[str], stop: threading.Event) -> None:
    """Print as a shim does: some lines at a time, faster and slower."""
    chance = random.Random(11)
    with closing(path.open("ab", buffering=0)) as file:
        while not stop.wait(chance.uniform(0, 0.02)):
            lines = [
                f"{len(said) + number} {'x' * chance.randint(0, 2000)}"
                for number in range(chance.randint(1, 40))
            ]
            file.write("".join(f"1000 {line}\n" for line in lines).encode())
            said += lines


def _ship_and_kill(place: Place, url: str, job_id: str, *, lines: int) -> None:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(place.data_dir), place.settings.database_url, job_id],
        env={**os.environ, **CREDENTIALS, "HUBLET_STORAGE_URL": url},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    for _ in range(lines):
        assert process.stdout.readline() == b"shipped\n"
    process.kill()
    process.wait()
    process.stdout.close()
