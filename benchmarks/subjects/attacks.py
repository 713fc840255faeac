"""What an attacker can make the hub do: work by the worst known input, and waits of others."""

import http.client
import json
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median

from benchmarks.figures import Goal, Row
from benchmarks.hubs import Site, serving
from benchmarks.latencies import percentile_of
from benchmarks.processes import fetch
from benchmarks.workbench import Workbench
from hublet.core import yaml_loader

_MEGABYTE = yaml_loader.LARGEST_TEXT
_YAML_GOAL = Goal(floor=50, aim=30, more_is_better=False, of="ours")
_HEALTH_GOAL = Goal(floor=1000, aim=100, more_is_better=False, of="ours")

_SILENT = 1100
_OPEN_FILES = 1024
_UNKNOWN_KEYS = json.dumps({f"k{number}": 1 for number in range(90_000)}).encode()
_AT_A_TIME = 10
_REQUESTS = 100


def measure(bench: Workbench) -> Iterator[Row]:
    """Work that one hostile request causes, and how long /healthz takes beside a flood."""
    yield _yaml(bench)
    yield _health_beside("1,100 silent connections, 1,024 open files", _silent_connections)
    yield _health_beside("90,000 unknown keys, ten bodies at a time", _unknown_keys)


def yaml_bombs() -> dict[str, str]:
    """Return YAML for each way that is known to make a parser slow."""
    short_values = "".join(f"k{number}: 1.5\n" for number in range(240))
    return {
        "base 60": _fill("a: ", "1:"),
        "numbers": _fill("[", "1.5e3,"),
        "digits": _fill("a: ", "1", "x"),
        "lists": _fill("[", "[],"),
        "mappings": _fill("[", "{a: b},"),
        "short values": "[" + "1.5," * 4_500 + "]",
        "names": _fill("", "".join(f"{number}:\n" for number in range(150_000))),
        "one name twice": _fill("", "a: b\n"),
        "anchors": _fill("[", "&a b,"),
        "tags": _fill("[", "!!str b,"),
        "merges": _fill("", "<<: {a: b}\n"),
        "aliases": _fill("a: &a [b]\nc: [", "*a,"),
        "directives": _fill("", "".join(f"%TAG !{number:x}! x\n" for number in range(90_000))),
        "open lists": _fill("", "["),
        "open lines": _fill("", "- "),
        "a long line": _fill("", "x"),
        "folded lines": _fill("", "x y\n "),
        "a literal block": _fill("a: |\n", " x\n"),
        "escapes": _fill('"', "\\n", '"'),
        "comments": _fill("", "#\n"),
        "documents": _fill("", "--- a\n"),
        "values, then text": _fill(short_values + "z: |\n", " x\n"),
    }


def _fill(start: str, part: str, end: str = "") -> str:
    size = _MEGABYTE - len(start) - len(end)
    return start + (part * (size // len(part) + 1))[:size] + end


def _yaml(bench: Workbench) -> Row:
    worst, millis = max(
        ((name, _millis(text, bench.rounds)) for name, text in yaml_bombs().items()),
        key=lambda each: each[1],
    )
    return Row(
        subject="1 MB of hostile YAML",
        unit="ms",
        ours=millis,
        goal=_YAML_GOAL,
        note=f"the worst is: {worst}",
    )


def _millis(text: str, rounds: int) -> float:
    return median(_seconds(text) for _ in range(rounds)) * 1000


def _seconds(text: str) -> float:
    # The thread's own time: a neighbour on the machine must not count.
    start = time.thread_time()
    with suppress(yaml_loader.InvalidYaml):
        yaml_loader.load(text)
    return time.thread_time() - start


def _health_beside(attack: str, begin: Callable[[int], AbstractContextManager[None]]) -> Row:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        # The hub inherits the limit; this process then needs more.
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, limits[1]))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        hub = stack.enter_context(serving(Site(folder=Path(folder), database_url=None)))
        resource.setrlimit(resource.RLIMIT_NOFILE, (4 * _OPEN_FILES, limits[1]))
        stack.enter_context(begin(hub.port))
        seconds = [_seconds_of_health(hub.port) for _ in range(_REQUESTS)]
    return Row(
        subject=f"/healthz beside {attack}",
        unit="ms",
        ours=percentile_of(seconds, 0.99),
        goal=_HEALTH_GOAL,
        note="p99",
    )


@contextmanager
def _silent_connections(port: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(_SILENT):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield


@contextmanager
def _unknown_keys(port: int) -> Iterator[None]:
    is_over = threading.Event()

    def send() -> None:
        headers = {"Content-Type": "application/json"}
        while not is_over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/api/credentials/revoke", _UNKNOWN_KEYS, headers)
            connection.getresponse().read()
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(_AT_A_TIME)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _seconds_of_health(port: int) -> float:
    start = time.perf_counter()
    status, _ = fetch(port, "/healthz")
    assert status == 200
    return time.perf_counter() - start
