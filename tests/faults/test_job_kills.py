"""Servers, workers and shims are killed while jobs run: each job runs once and ends once."""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults.content_events import with_database
from hublet.core.database import Database
from processes import Place, serving, working
from runtime.supervisor.supervised_jobs import a_job

JOBS = 100
KILLS = 4
FEW = 4
PATIENCE_SECONDS = 240
VARIABLES = {
    "HUBLET_TEST_MODE": "true",
    "HUBLET_JOBS_RUNNER": "process",
    "HUBLET_JOBS_CORES": "1000",
    "HUBLET_JOBS_MEMORY_BYTES": str(2**40),
    "HUBLET_JOBS_CONCURRENT": "4",
}
OVER = {"COMPLETED", "ERROR", "CANCELED"}
SAID = "SELECT id, stage, message FROM jobs"
# The part of jobs whose shim nobody kills.
SPARED = 0.3


def test_killed_servers_cost_no_job_and_repeat_none(place: Place) -> None:
    ran = place.folder / "ran"
    script = f"sleep 0.1; echo $JOB_ID >> {ran}"
    _prepare(place)
    jobs = []
    for _ in range(KILLS):
        # So that there is work at each kill, also when the test is slower than the jobs.
        jobs += _start_many(place, script=script, count=JOBS // (KILLS + 1))
        before = _count_over(place)
        with serving(place, variables=VARIABLES) as server:
            _until(lambda seen=before: _count_over(place) > seen)  # type: ignore[misc]
            time.sleep(random.uniform(0, 0.3))
            server.process.kill()
    jobs += _start_many(place, script=script, count=JOBS - len(jobs))
    with serving(place, variables=VARIABLES):
        _wait_until_over(place, count=JOBS)
        _wait_until_nothing_is_left(place)

    assert _stages(place) == {"COMPLETED": JOBS}
    assert Counter(ran.read_text().split()) == Counter(jobs)
    assert _ends(place) == Counter(jobs)
    for job in jobs:
        assert _log_of(place, job).count("===== Job started") == 1


def test_killed_shims_are_failed_attempts_and_nothing_of_them_runs_on(place: Place) -> None:
    _prepare(place)
    jobs = _start_many(place, count=FEW, script="sleep 1000", attempts=2)
    with serving(place, variables=VARIABLES):
        for attempt in (1, 2):
            _wait_until_running(place, count=FEW, attempt=attempt)
            for job in jobs:
                _kill_shim(place, job, attempt)
        _wait_until_over(place, count=FEW)
        _wait_until_nothing_is_left(place)

    assert _rows(place, "SELECT DISTINCT stage, message, failure_count FROM jobs") == [
        ("ERROR", "what looked after it was killed", 2)
    ]
    assert _ends(place) == Counter(jobs)
    assert not _left_processes(place)


def test_shims_killed_at_any_moment_cost_their_own_jobs_and_no_word_of_the_log(
    place: Place,
) -> None:
    count = 8
    _prepare(place)
    jobs = _start_many(place, script=f"for i in $(seq {count}); do echo $i; sleep 0.03; done")
    with serving(place, variables=VARIABLES | {"HUBLET_JOBS_CONCURRENT": "8"}):
        seen = _kill_shims_while_any_job_goes_on(place)
        _wait_until_nothing_is_left(place)

    ended = {job: (stage, said) for job, stage, said in _rows(place, SAID)}
    assert _ends(place) == Counter(jobs)
    # On a slow machine every kill may come too late.
    assert set(ended.values()) <= {
        ("COMPLETED", None),
        ("ERROR", "what looked after it was killed"),
    }
    whole = [str(number) for number in range(1, count + 1)]
    for job in jobs:
        printed = _printed(place, job)
        assert printed == whole[: len(printed)]
        assert len(printed) == count or ended[job][0] == "ERROR"
        # What was in the log when the shim was killed is still there.
        assert printed[: len(seen.get(job, []))] == seen.get(job, [])
    assert not _left_processes(place)
    assert not _left_groups(jobs)


def test_workers_share_jobs_and_another_goes_on_for_a_killed_one(
    fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    place = Place(folder=tmp_path, database_url=fresh_url())
    ran, go_on = place.folder / "ran", place.folder / "go-on"
    script = f"until [ -e {go_on} ]; do sleep 0.2; done; echo $JOB_ID >> {ran}"
    _prepare(place)
    with working(place, variables=VARIABLES) as other:
        jobs = _start_many(place, script=script, count=FEW)
        _until(lambda: other.name in _holders(place))
        with working(place, variables=VARIABLES):
            jobs += _start_many(place, script=script, count=JOBS - FEW)
            other.process.kill()
            go_on.touch()
            _wait_until_over(place, count=JOBS)
            _wait_until_nothing_is_left(place)

    assert _stages(place) == {"COMPLETED": JOBS}
    assert Counter(ran.read_text().split()) == Counter(jobs)


def _prepare(place: Place) -> None:
    with serving(place, variables=VARIABLES):
        pass


def _until(is_so: Callable[[], bool]) -> None:
    """Wait for something in the database; to look all the time would slow down what is awaited."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"Waited {PATIENCE_SECONDS} seconds in vain."
        time.sleep(0.2)


def _start_many(place: Place, *, script: str, count: int = JOBS, attempts: int = 1) -> list[str]:
    async def start(database: Database) -> list[str]:
        command = ["sh", "-c", script]
        return [await a_job(database, command=command, attempts=attempts) for _ in range(count)]

    return with_database(place, start)


def _rows(place: Place, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    async def read(database: Database) -> list[tuple[Any, ...]]:
        async with database.read() as conn:
            return [tuple(row) for row in await conn.fetch_all(sql, *values)]

    return with_database(place, read)


def _stages(place: Place) -> dict[str, int]:
    return dict(_rows(place, "SELECT stage, count(*) FROM jobs GROUP BY stage"))


def _count_over(place: Place) -> int:
    return sum(count for stage, count in _stages(place).items() if stage in OVER)


def _wait_until_over(place: Place, *, count: int) -> None:
    _until(lambda: _count_over(place) == count)


def _wait_until_running(place: Place, *, count: int, attempt: int) -> None:
    sql = "SELECT count(*) FROM jobs WHERE stage = 'RUNNING' AND attempt = $1"
    _until(lambda: _rows(place, sql, attempt) == [(count,)])


def _wait_until_nothing_is_left(place: Place) -> None:
    sql = "SELECT count(*) FROM job_attempts WHERE removed_at IS NULL"
    _until(lambda: _rows(place, sql) == [(0,)])


def _ends(place: Place) -> Counter[str]:
    rows = _rows(
        place, "SELECT job_id FROM job_events WHERE stage IN ('COMPLETED', 'ERROR', 'CANCELED')"
    )
    return Counter(job_id for (job_id,) in rows)


def _holders(place: Place) -> set[str]:
    rows = _rows(place, "SELECT DISTINCT claimed_by FROM jobs WHERE claimed_by IS NOT NULL")
    return {worker for (worker,) in rows}


def _log_of(place: Place, job_id: str) -> str:
    return (place.data_dir / "jobs" / job_id[:2] / job_id / "log").read_text()


def _kill_shim(place: Place, job_id: str, attempt: int) -> None:
    folder = place.data_dir / "jobs" / job_id[:2] / job_id / f"attempt-{attempt}"
    status = json.loads((folder / "status.json").read_text())
    os.kill(status["pid"], signal.SIGKILL)


def _kill_shims_while_any_job_goes_on(place: Place) -> dict[str, list[str]]:
    """Kill one shim after the other, some of them just begun; return what each log held then."""
    seen = dict[str, list[str]]()
    spared = set[str]()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _count_over(place) < JOBS:
        assert time.monotonic() < deadline, "Not all jobs ended."
        time.sleep(0.1)
        for path in place.data_dir.glob("jobs/*/*/attempt-1/status.json"):
            job = path.parents[1].name
            if job in seen or job in spared:
                continue
            if random.random() < SPARED:
                spared.add(job)
                continue
            time.sleep(random.choice((0, 0, 0.01, 0.1)))
            seen[job] = _printed(place, job)
            with suppress(OSError, ValueError):
                _kill_shim(place, job, 1)
    return seen


def _printed(place: Place, job_id: str) -> list[str]:
    try:
        text = _log_of(place, job_id)
    except FileNotFoundError:
        return []  # It was killed before it began to write.
    assert text == "" or text.endswith("\n")
    texts = [line.partition(" ")[2] for line in text.splitlines()]
    return [text for text in texts if not text.startswith("===== Job started at ")]


def _left_groups(jobs: list[str]) -> list[str]:
    names = {f"hublet-{job}-1" for job in jobs}
    return [str(path) for path in Path("/sys/fs/cgroup").rglob("hublet-*") if path.name in names]


def _left_processes(place: Place) -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "environ").read_bytes()
        except OSError:
            continue
        if str(place.data_dir).encode() in words and b"JOB_ID=" in words:
            found.append(folder.name)
    return found
