"""Jobs: how soon one prints, how many begin and end, what a talkative and an idle one cost."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import BASE_URL, Site, populate
from benchmarks.latencies import percentile_of
from benchmarks.processes import COMMANDS, Child, free_port, running, wait_until_it_answers
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

_PATH = "/api/jobs/ada"
_SINGLE, _SHORT, _AT_ONCE, _LINES = 40, 200, 200, 1_000_000
_PATIENCE_SECONDS = 300.0
_WORD = "hello"
_ABOVE_BARE = Goal(floor=50, aim=20, more_is_better=False, of="ours")
_RATE = Goal(aim=100, more_is_better=True, of="ours")
_LINE_RATE = Goal(aim=300_000, more_is_better=True, of="ours")
_VARIABLES = {
    "HUBLET_LIMITS_AUTHENTICATED_REQUESTS": "1000000000",
    "HUBLET_JOBS_IMAGES": "*=host",
    "HUBLET_JOBS_FLAVORS": "cpu-basic=0.1:64M",
    "HUBLET_JOBS_CONCURRENT": "500",
    "HUBLET_JOBS_CORES": "1000",
    "HUBLET_JOBS_MEMORY_BYTES": str(2**40),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hub:
    client: httpx2.Client
    child: Child
    data_dir: Path

    def start(self, script: str) -> str:
        body = {"dockerImage": "any", "flavor": "cpu-basic", "command": ["sh", "-c", script]}
        response = self.client.post(_PATH, json=body)
        if response.status_code != httpx2.codes.OK:
            raise Spoiled(f"A job was refused: {response.text}")
        job_id: str = response.json()["id"]
        return job_id

    def log(self, job_id: str) -> Path:
        return self.data_dir / "jobs" / job_id[:2] / job_id / "log"

    def wait_for_ends(self, job_ids: list[str]) -> None:
        waiting = list(job_ids)
        while waiting:
            shown: Any = self.client.get(f"{_PATH}/{waiting[-1]}").json()["status"]
            if shown["stage"] in {"ERROR", "CANCELED"}:
                raise Spoiled(f"A job failed: {shown}")
            if shown["stage"] == "COMPLETED":
                waiting.pop()
            else:
                time.sleep(0.01)


def measure(bench: Workbench) -> Iterator[Row]:
    """Jobs in the sandbox, on SQLite: first byte, short ones, many at once, a million lines."""
    site = bench.site("SQLite")
    with _serving(site) as hub:
        hub.wait_for_ends([hub.start("true")])
        yield _first_byte(hub, count=_part(_SINGLE, bench))
        yield _short(hub, count=_part(_SHORT, bench))
        yield from _idle(hub, count=_part(_AT_ONCE, bench))
        yield _talkative(hub, lines=_part(_LINES, bench))


def _part(count: int, bench: Workbench) -> int:
    return max(round(count * bench.share), 2)


@contextmanager
def _serving(site: Site) -> Iterator[_Hub]:
    token = run_loop(populate(site.settings()))
    port = free_port()
    command = [str(COMMANDS / "hublet"), "serve", "--port", str(port), "--base-url", BASE_URL]
    output = site.folder / "hub.log"
    with running([*command, *site.flags], output=output, variables=_VARIABLES) as child:
        wait_until_it_answers(child, port, "/healthz")
        with httpx2.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"authorization": f"Bearer {token}"},
            timeout=60,
            trust_env=False,
        ) as client:
            yield _Hub(client=client, child=child, data_dir=site.data_dir)


def _first_byte(hub: _Hub, *, count: int) -> Row:
    ours, bare = [], []
    for _ in range(count):
        begun = time.perf_counter()
        log = hub.log(hub.start(f"echo {_WORD}"))
        _wait_for_text(log, f" {_WORD}\n")
        ours.append((time.perf_counter() - begun) * 1000)
        begun = time.perf_counter()
        subprocess.run(["sh", "-c", f"echo {_WORD}"], check=True, capture_output=True)
        bare.append((time.perf_counter() - begun) * 1000)
    above = median(ours) - median(bare)
    note = f"p50 {median(ours):.0f} ms, p99 {percentile_of([each / 1000 for each in ours], 0.99):.0f} ms in all"
    return Row(
        subject="job, from the request to its first byte, above a bare process",
        unit="ms",
        ours=above,
        goal=_ABOVE_BARE,
        note=f"{note}; bare {median(bare):.1f} ms",
    )


def _wait_for_text(log: Path, text: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not log.exists() or text not in log.read_text():
        if time.monotonic() > deadline:
            raise Spoiled("A job printed nothing.")
        time.sleep(0.0005)


def _short(hub: _Hub, *, count: int) -> Row:
    begun = time.perf_counter()
    hub.wait_for_ends([hub.start("true") for _ in range(count)])
    rate = count / (time.perf_counter() - begun)
    return Row(subject=f"{count} short jobs", unit="/s", ours=rate, goal=_RATE)


def _idle(hub: _Hub, *, count: int) -> Iterator[Row]:
    """Begin many at once; what they take is what the machine has less of meanwhile."""
    free = _free_megabytes()
    begun = time.perf_counter()
    job_ids = [hub.start(f"echo {_WORD}; exec sleep 30") for _ in range(count)]
    for job_id in job_ids:
        _wait_for_text(hub.log(job_id), _WORD)
    seconds = time.perf_counter() - begun
    used = (free - _free_megabytes()) / count
    for job_id in job_ids:
        hub.client.post(f"{_PATH}/{job_id}/cancel")
    yield Row(subject=f"{count} jobs at once, until all have begun", unit="s", ours=seconds)
    yield Row(subject=f"memory of an idle job, of {count}", unit="MB", ours=used)


def _free_megabytes() -> float:
    """Tell what the machine has left: an idle job is several processes that share a lot."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return int(found["MemAvailable"].split()[0]) / 1024


def _talkative(hub: _Hub, *, lines: int) -> Row:
    begun = time.perf_counter()
    job_id = hub.start(f"seq {lines}")
    hub.wait_for_ends([job_id])
    seconds = time.perf_counter() - begun
    with hub.log(job_id).open("rb") as log:
        kept = sum(1 for _ in log) - 1
    if kept != lines:
        raise Spoiled(f"{lines} lines were printed and {kept} kept.")
    mebibytes = hub.log(job_id).stat().st_size / 2**20
    return Row(
        subject=f"a job that prints {lines:,} lines",
        unit="lines/s",
        ours=lines / seconds,
        goal=_LINE_RATE,
        note=f"all kept, {mebibytes:.0f} MiB",
    )
