"""Commits: of 1,000 small files at once, and of 50 clients at the same time."""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.content import NDJSON, OWNER, Account, commit_body
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ENGINES, Engine, populate, serving
from benchmarks.latencies import percentile
from benchmarks.load import CONNECTION, NUMBER, LoadPlan, Outcome, digits
from benchmarks.machine import tied_to
from benchmarks.processes import clean_environment
from benchmarks.rounds import apply_load, request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

FILES = 1000
CLIENTS = 50
_FILE_BYTES = 1000
_WARM_UP_SECONDS = 2.0
_NOT_SLOWER_THAN_GIT = Goal(aim=1.0, more_is_better=False, of="ratio")
_GIT_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@hub.test",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@hub.test",
}


def measure(bench: Workbench) -> Iterator[Row]:
    """A commit of 1,000 files against git itself, and 50 committing clients against one."""
    for engine in ENGINES:
        site = bench.site(engine)
        token = run_loop(populate(site.settings()))
        with serving(site, core=bench.cores.server) as hub:
            account = Account(hub=hub, token=token)
            yield _many_files(bench, account, engine, folder=site.folder)
            yield from _many_clients(bench, account, engine)


def _many_files(bench: Workbench, account: Account, engine: Engine, *, folder: Path) -> Row:
    ours: list[float] = []
    other: list[float] = []
    for number in range(bench.rounds):
        # New bytes each time: what git has already it would not write again.
        files = {f"folder-{n % 10}/{n}.txt": os.urandom(_FILE_BYTES) for n in range(FILES)}
        account.create_repo(name := f"many-files-{number}")
        body = commit_body(files)
        with tied_to(bench.cores.load):
            start = time.perf_counter()
            account.commit(name, body)
            ours.append(time.perf_counter() - start)
        with tied_to(bench.cores.server):
            other.append(_seconds_of_git(folder / name, files))
    row = compare(
        f"commit of {FILES:,} files, {engine}",
        ours=ours,
        other=other,
        other_is="git add, git commit and git push to a bare repository beside it",
        unit="s",
        goal=_NOT_SLOWER_THAN_GIT,
    )
    return replace(row, note=f"{_FILE_BYTES:,} bytes each, in ten folders")


def _seconds_of_git(folder: Path, files: dict[str, bytes]) -> float:
    folder.mkdir()
    _git(folder, "init", "--quiet", "--bare", "there.git")
    _git(folder, "clone", "--quiet", "there.git", "here")
    here = folder / "here"
    for path, content in files.items():
        (here / path).parent.mkdir(exist_ok=True)
        (here / path).write_bytes(content)
    start = time.perf_counter()
    _git(here, "add", ".")
    _git(here, "commit", "--quiet", "--message", "Add files")
    _git(here, "push", "--quiet", "origin", "HEAD:main")
    return time.perf_counter() - start


def _git(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=clean_environment(_GIT_ALONE),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Spoiled(f"git {' '.join(arguments)} said: {done.stderr.strip()}")


def _many_clients(bench: Workbench, account: Account, engine: Engine) -> Iterator[Row]:
    for number in range(CLIENTS):
        account.create_repo(f"clients-{digits(number)}")
    subject = f"commits of {CLIENTS} clients, {engine}"
    counted = _Committing(bench, account)
    counted.run(subject, clients=CLIENTS, seconds=_WARM_UP_SECONDS)
    many: list[Outcome] = []
    one: list[Outcome] = []
    for _ in range(bench.rounds):
        many.append(counted.run(subject, clients=CLIENTS, seconds=bench.seconds))
        one.append(counted.run(subject, clients=1, seconds=bench.seconds))
    row = compare(
        subject,
        ours=[each.rate for each in many],
        other=[each.rate for each in one],
        other_is="one client",
        unit="/s",
    )
    yield replace(row, note="each commits to a repository of its own")
    yield compare(
        f"{subject}, p99",
        ours=[percentile(each.latencies, 0.99) for each in many],
        other=[percentile(each.latencies, 0.99) for each in one],
        other_is="one client",
        unit="ms",
    )


class _Committing:
    """Loads of small commits; no two of them are the same."""

    def __init__(self, bench: Workbench, account: Account) -> None:
        self._bench = bench
        self._account = account
        # Digits are base64 as well, so the content is another one each time.
        body = commit_body({"counter.txt": b"123456"}).replace(b"MTIzNDU2", NUMBER.encode())
        path = f"/api/models/{OWNER}/clients-{CONNECTION}/commit/main"
        self._request = request_bytes(
            "POST", path, headers=account.headers, body=body, media_type=NDJSON
        )
        self._made = 0

    def run(self, name: str, *, clients: int, seconds: float) -> Outcome:
        plan = LoadPlan(
            port=self._account.hub.port,
            request=self._request,
            connections=clients,
            seconds=seconds,
            core=self._bench.cores.load,
            numbered=True,
            first_number=self._made,
        )
        outcome = apply_load(plan, name=name)
        # More than any of them can have sent, so that nothing is ever sent twice.
        self._made += outcome.answers + clients
        return outcome
