"""The port of a job through the hub, beside a direct connection to the same process."""

import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import httpx2

from benchmarks.content import MEGABYTE
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import Site, populate
from benchmarks.latencies import merged, percentile
from benchmarks.machine import tied_to
from benchmarks.processes import (
    COMMANDS,
    Child,
    cpu_seconds,
    free_port,
    running,
    wait_until_it_answers,
)
from benchmarks.rounds import LoadTarget, Round, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

_JOB = Path(__file__).parent.parent / "proxied.py"
_CONNECTIONS, _TURNS, _BULK = 32, 20_000, 512 * MEGABYTE
_PATIENCE_SECONDS = 30.0
_DIRECT, _PROXIED = "a direct connection to the job", "through the hub"
_ADDED = Goal(floor=1.0, aim=0.5, more_is_better=False, of="ours")
_RATE = Goal(floor=2000, aim=4000, more_is_better=True, of="ours")
_ROUND_TRIPS = Goal(floor=3000, aim=7000, more_is_better=True, of="ours")
_SPEED = Goal(floor=500, aim=1000, more_is_better=True, of="ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One of the two ways to the job."""

    port: int
    headers: Mapping[str, str]

    def request(self, path: str, **headers: str) -> bytes:
        return request_bytes("GET", path, headers={**self.headers, **headers})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ways:
    hub: Child
    proxied: _Way
    direct: _Way


def measure(bench: Workbench) -> Iterator[Row]:
    """The port of a job through the hub: what it adds, requests, round trips, megabytes."""
    with _ways(bench, bench.site("SQLite")) as ways:
        yield _added(_load(bench, ways, connections=1))
        yield from _rates(_load(bench, ways, connections=_CONNECTIONS))
        with tied_to(bench.cores.load):
            yield _round_trips(bench, ways)
            yield _bulk(bench, ways)


@contextmanager
def _ways(bench: Workbench, site: Site) -> Iterator[_Ways]:
    token = run_loop(populate(site.settings()))
    port, job_port = free_port(), free_port()
    base_url = f"http://127.0.0.1:{port}"
    command = [str(COMMANDS / "hublet"), "serve", "--port", str(port), "--base-url", base_url]
    variables = {"HUBLET_JOBS_RUNNER": "process", "HUBLET_LOGS_ACCESS": "false"}
    with running(
        [*command, *site.flags],
        output=site.folder / "hub.log",
        core=bench.cores.server,
        variables=variables,
    ) as child:
        wait_until_it_answers(child, port, "/healthz")
        authorization = {"authorization": f"Bearer {token}"}
        host = _start(base_url, authorization, port=job_port, core=bench.cores.load)
        proxied = _Way(port=port, headers=authorization | {"host": host})
        try:
            yield _Ways(hub=child, proxied=proxied, direct=_Way(port=job_port, headers={}))
        finally:
            _end(base_url, authorization, host.partition("--")[0])


def _start(base_url: str, headers: Mapping[str, str], *, port: int, core: int | None) -> str:
    """Start the job, wait until it answers through the hub, and return the host of its port."""
    core = -1 if core is None else core
    body = {
        "dockerImage": "any",
        "flavor": "cpu-basic",
        "command": [sys.executable, str(_JOB), str(port), str(core)],
        "expose": {"ports": [port]},
    }
    with httpx2.Client(base_url=base_url, headers=headers, trust_env=False) as client:
        job = client.post("/api/jobs/ada", json=body).json()
        host: str = job["status"]["exposeUrls"][0].partition("://")[2]
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (found := client.get("/", headers={"host": host})).text != "hello":
            if time.monotonic() > deadline:
                raise Spoiled(f"The job does not answer: {found.text}")
            time.sleep(0.05)
    return host


def _end(base_url: str, headers: Mapping[str, str], job_id: str) -> None:
    """End the job, which would go on when the hub ends."""
    path = f"/api/jobs/ada/{job_id}"
    with httpx2.Client(base_url=base_url, headers=headers, trust_env=False) as client:
        client.post(f"{path}/cancel")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while client.get(path).json()["status"]["stage"] != "CANCELED":
            if time.monotonic() > deadline:
                raise Spoiled("The job does not end.")
            time.sleep(0.05)


def _load(bench: Workbench, ways: _Ways, *, connections: int) -> dict[str, list[Round]]:
    targets = [
        LoadTarget(name=name, process_id=ways.hub.id, port=way.port, request=way.request("/"))
        for name, way in ((_PROXIED, ways.proxied), (_DIRECT, ways.direct))
    ]
    return alternate(
        targets,
        connections=connections,
        seconds=bench.seconds,
        rounds=bench.rounds,
        core=bench.cores.load,
    )


def _added(rounds: Mapping[str, list[Round]]) -> Row:
    middle = {
        name: percentile(merged(each.latencies for each in taken), 0.5)
        for name, taken in rounds.items()
    }
    return Row(
        subject="port of a job, what the hub adds to a request (p50)",
        unit="ms",
        ours=middle[_PROXIED] - middle[_DIRECT],
        goal=_ADDED,
        note=f"{middle[_PROXIED]:.2f} ms through the hub, {middle[_DIRECT]:.2f} ms directly",
    )


def _rates(rounds: Mapping[str, list[Round]]) -> Iterator[Row]:
    yield compare(
        f"port of a job, {_CONNECTIONS} connections",
        ours=[each.rate for each in rounds[_PROXIED]],
        other=[each.rate for each in rounds[_DIRECT]],
        other_is=_DIRECT,
        unit="/s",
        goal=_RATE,
    )
    yield Row(
        subject="port of a job, by processor time of the hub",
        unit="/s",
        ours=median(1e6 / each.cpu_micros for each in rounds[_PROXIED]),
        goal=_RATE,
    )


def _round_trips(bench: Workbench, ways: _Ways) -> Row:
    turns = max(round(_TURNS * bench.share), 100)
    return _compared(
        bench,
        ways,
        lambda way: _trips_per_second(way, turns),
        amount=turns,
        subject="port of a job, round trips of a taken-over connection",
        unit="/s",
        goal=_ROUND_TRIPS,
    )


def _bulk(bench: Workbench, ways: _Ways) -> Row:
    size = int(max(_BULK * bench.share, MEGABYTE))
    return _compared(
        bench,
        ways,
        lambda way: _megabytes_per_second(way, size),
        amount=size / MEGABYTE,
        subject=f"port of a job, {size / MEGABYTE:,.0f} MB in one answer",
        unit="MB/s",
        goal=_SPEED,
    )


def _compared(  # noqa: PLR0913 - what is measured, and how the row tells it
    bench: Workbench,
    ways: _Ways,
    figure: Callable[[_Way], float],
    *,
    amount: float,
    subject: str,
    unit: str,
    goal: Goal,
) -> Row:
    """Measure both ways in turn; where others use the machine the processor's time is steadier."""
    before = cpu_seconds(ways.hub.id)
    pairs = [(figure(ways.proxied), figure(ways.direct)) for _ in range(bench.rounds)]
    spent = max(cpu_seconds(ways.hub.id) - before, 0.01)
    row = compare(
        subject,
        ours=[ours for ours, _ in pairs],
        other=[other for _, other in pairs],
        other_is=_DIRECT,
        unit=unit,
        goal=goal,
    )
    by_processor = amount * bench.rounds / spent
    return replace(row, note=f"by processor time of the hub {by_processor:,.0f} {unit}")


def _trips_per_second(way: _Way, turns: int) -> float:
    message = b"m" * 64
    with socket.create_connection(("127.0.0.1", way.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(way.request("/", connection="upgrade", upgrade="echo"))
        if not connection.recv(4096).startswith(b"HTTP/1.1 101"):
            raise Spoiled("The job did not take the connection over.")
        begun = time.perf_counter()
        for _ in range(turns):
            connection.sendall(message)
            if connection.recv(4096) != message:
                raise Spoiled("The job did not repeat what it was told.")
        return turns / (time.perf_counter() - begun)


def _megabytes_per_second(way: _Way, size: int) -> float:
    piece, left = bytearray(1 << 20), size
    with socket.create_connection(("127.0.0.1", way.port), timeout=60) as connection:
        begun = time.perf_counter()
        connection.sendall(way.request(f"/bulk/{size}"))
        while left > 0:
            count = connection.recv_into(piece)
            if not count:
                raise Spoiled(f"{left} bytes of {size} are missing.")
            left -= count
        return size / MEGABYTE / (time.perf_counter() - begun)
