"""Attacks on a hub: how long /healthz takes beside each of them. Run: python -m benchmarks.attacks."""

import http.client
import json
import resource
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.hubs import Site, serving
from benchmarks.latencies import percentile_of
from benchmarks.processes import fetch

_SILENT = 1100
_OPEN_FILES = 1024
_UNKNOWN_KEYS = json.dumps({f"k{number}": 1 for number in range(90_000)}).encode()
_AT_A_TIME = 10
_ASKED = 100


@contextmanager
def silent_connections(port: int) -> Iterator[None]:
    with ExitStack() as stack:
        for _ in range(_SILENT):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield


@contextmanager
def unknown_keys(port: int) -> Iterator[None]:
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


# What is told, and the attack that goes on meanwhile.
ROWS: list[tuple[str, Callable[[int], contextmanager]]] = [  # type: ignore[type-arg]
    ("1,100 silent connections, 1,024 open files", silent_connections),
    ("90,000 unknown keys, ten bodies at a time", unknown_keys),
]


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for subject, attack in ROWS:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            # The hub inherits the limit; this process then needs more.
            resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, hard))
            hub = stack.enter_context(serving(Site(folder=Path(folder), database_url=None)))
            resource.setrlimit(resource.RLIMIT_NOFILE, (4 * _OPEN_FILES, hard))
            stack.enter_context(attack(hub.port))
            seconds = [_seconds_of_health(hub.port) for _ in range(_ASKED)]
        p50, p99 = (percentile_of(seconds, share) for share in (0.5, 0.99))
        sys.stdout.write(f"{subject}: /healthz p50 {p50:.1f} ms, p99 {p99:.1f} ms\n")


def _seconds_of_health(port: int) -> float:
    start = time.perf_counter()
    status, _ = fetch(port, "/healthz")
    assert status == 200
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
