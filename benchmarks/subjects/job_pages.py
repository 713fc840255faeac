"""Pages of jobs: a log of a million lines that opens, a log that is followed, and 200 open pages."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.discussions import add_users
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ServedHub, opened, serving
from benchmarks.processes import cpu_seconds, fetch
from benchmarks.rounds import request_bytes
from benchmarks.workbench import Workbench
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.accounts.users import service as accounts
from hublet.cli.local_hub import run_loop
from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.jobs import service
from hublet.jobs.access import get_access_of_creator, get_creator
from hublet.jobs.logs.reader import log_path
from hublet.jobs.records import Initiator, InitiatorType
from hublet.jobs.requests import REQUEST_ADAPTER
from hublet.login import sessions
from hublet.login.browser import SESSION_COOKIE
from hublet.login.records import Visitor

_OPENING = Goal(aim=1000, more_is_better=False, of="ours")
_CORE = Goal(aim=100, more_is_better=False, of="ours")
_OWNER = "engines"
_PAGES = 200
_PEOPLE = 20
_JOBS = 20
_LINES = 1_000_000
_LINES_PER_SECOND = 1000
_LINE = "\x1b[32mINFO\x1b[0m step={} loss=0.6521 lr=2.71e-04 \x1b[90mtokens/s=12045\x1b[0m"
_REQUEST = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["true"]}
_LONGEST_SECONDS = 60.0
_NUMBER = re.compile(rb'data-n="(\d+)"')


@dataclass(slots=True)
class _OpenPage:
    """The stream of one page, and the lines that it was sent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    numbers: list[int] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        while line := await self.reader.readline():
            if line.startswith(b"event: unread"):
                self.ready.set()
            self.numbers += map(int, _NUMBER.findall(line))


def measure(bench: Workbench) -> Iterator[Row]:
    """A log of a million lines: opening, following; 200 open pages: share of a core."""
    site = bench.site("SQLite")
    jobs, cookies = run_loop(_furnish(site.settings()))
    data_dir = site.settings().database.data_dir
    total = max(1000, round(_LINES * bench.share))
    _print(log_path(data_dir, jobs[0]), 0, total)
    with serving(site, core=bench.cores.server) as hub:
        # The first page of a process loads its templates.
        fetch(hub.port, f"/jobs/{_OWNER}/{jobs[-1]}", _headers(cookies[0]))
        yield from _opening(hub, jobs[0], cookies[0], total)
        seconds = max(2.0, 10 * bench.share)
        yield run_loop(_following(hub, data_dir, jobs[1], cookies[0], seconds))
        yield run_loop(_watching(hub, data_dir, jobs, cookies, seconds))


async def _furnish(settings: Settings) -> tuple[list[str], list[str]]:
    """Return jobs that run, as far as pages know, and the cookies of people who may see them."""
    async with opened(settings) as database:
        users = await add_users(database, "watcher", _PEOPLE)
        async with database.transaction() as conn:
            owner = await organizations.create(conn, OPERATOR, _OWNER)
            cookies = []
            for user_id in users:
                user = await accounts.get_user_by_id(conn, user_id)
                await organizations.set_member(conn, OPERATOR, owner, user, Role.admin)
                visitor = Visitor(address="127.0.0.1", agent="benchmarks")
                cookies.append((await sessions.begin(conn, user, visitor))[1])
            access = await get_access_of_creator(conn, await get_creator(conn, users[0]), owner.id)
            made = [
                await service.create(
                    conn,
                    access=access,
                    initiator=Initiator(type=InitiatorType.user, id=users[0]),
                    request=REQUEST_ADAPTER.validate_python(_REQUEST),
                )
                for _ in range(_JOBS)
            ]
            # No worker claims them: they are there to be looked at.
            await conn.execute("UPDATE jobs SET stage = 'RUNNING', due_at = NULL")
    return [job.id for job in made], cookies


def _print(log: Path, first: int, count: int) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    stamp = micros()
    with log.open("a") as file:
        file.writelines(f"{stamp} {_LINE.format(first + n)}\n" for n in range(count))


def _opening(hub: ServedHub, job_id: str, cookie: str, total: int) -> Iterator[Row]:
    for name, query in {
        "first time": "",
        "again": "",
        "a range in the middle": f"?from={total // 2}",
        "search for one line": f"?q=step%3D{total // 2}+loss",
    }.items():
        start = time.perf_counter()
        headers = _headers(cookie)
        status, body = fetch(hub.port, f"/jobs/{_OWNER}/{job_id}{query}", headers)
        took = time.perf_counter() - start
        if status != 200 or b'class="l' not in body:
            raise Spoiled(f"The page answered {status}.")
        yield Row(
            subject=f"job page, log of {total:,} lines, {name}",
            unit="ms",
            ours=took * 1000,
            goal=None if "q=" in query else _OPENING,
        )


async def _following(
    hub: ServedHub, data_dir: Path, job_id: str, cookie: str, seconds: float
) -> Row:
    """Print 1,000 lines a second, and count those that reach a page."""
    path = f"/jobs/{_OWNER}/{job_id}/stream"
    async with _open_pages(hub.port, [(path, cookie)]) as [page]:
        before, start = cpu_seconds(hub.child.id), time.perf_counter()
        count = 0
        while time.perf_counter() < start + seconds:
            await asyncio.to_thread(_print, log_path(data_dir, job_id), count, 50)
            count += 50
            await asyncio.sleep(max(0.0, start + count / _LINES_PER_SECOND - time.perf_counter()))
        printed_at = time.perf_counter()
        while len(page.numbers) < count:
            if time.perf_counter() > printed_at + _LONGEST_SECONDS:
                raise Spoiled(f"{len(page.numbers)} of {count} lines came.")
            await asyncio.sleep(0.005)
        late = time.perf_counter() - printed_at
        share = (cpu_seconds(hub.child.id) - before) / (time.perf_counter() - start)
    if page.numbers != list(range(1, count + 1)):
        raise Spoiled("Lines were lost or came twice.")
    return Row(
        subject="job page that follows 1,000 lines/s, share of a core",
        unit="%",
        ours=share * 100,
        goal=_CORE,
        note=f"all {count:,} lines once and in order; the last one {late * 1000:.0f} ms late",
    )


async def _watching(
    hub: ServedHub, data_dir: Path, jobs: Sequence[str], cookies: Sequence[str], seconds: float
) -> Row:
    """Open 200 pages of 20 jobs, each of which prints ten lines a second."""
    last = {job_id: _count(log_path(data_dir, job_id)) for job_id in jobs}
    asked = [
        (f"/jobs/{_OWNER}/{jobs[number % len(jobs)]}/stream", cookies[number % len(cookies)])
        for number in range(_PAGES)
    ]
    queries = [(f"{path}?after={last[path.split('/')[3]]}", cookie) for path, cookie in asked]
    async with _open_pages(hub.port, queries) as pages:
        before, start, rounds = cpu_seconds(hub.child.id), time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            for job_id in jobs:
                _print(log_path(data_dir, job_id), rounds * 10, 10)
            rounds += 1
            await asyncio.sleep(max(0.0, start + rounds - time.perf_counter()))
        took = time.perf_counter() - start
        share = (cpu_seconds(hub.child.id) - before) / took
        deadline = time.perf_counter() + _LONGEST_SECONDS
        while any(len(page.numbers) < rounds * 10 for page in pages):
            if time.perf_counter() > deadline:
                raise Spoiled("Not all lines came.")
            await asyncio.sleep(0.05)
    return Row(
        subject=f"{_PAGES} open job pages, {_JOBS} jobs with 10 lines/s each, share of a core",
        unit="%",
        ours=share * 100,
        goal=_CORE,
    )


def _count(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _headers(cookie: str) -> dict[str, str]:
    return {"accept": "text/html", "cookie": f"{SESSION_COOKIE}={cookie}"}


@asynccontextmanager
async def _open_pages(
    port: int, asked: Sequence[tuple[str, str]]
) -> AsyncIterator[list[_OpenPage]]:
    pages, tasks = [], []
    try:
        for path, cookie in asked:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
            page = _OpenPage(reader, writer)
            pages.append(page)
            writer.write(request_bytes("GET", path, headers=_headers(cookie)))
            tasks.append(asyncio.create_task(page.listen()))
        async with asyncio.timeout(_LONGEST_SECONDS):
            await asyncio.gather(*(each.ready.wait() for each in pages))
        yield pages
    finally:
        for task in tasks:
            task.cancel()
        for page in pages:
            page.writer.close()
