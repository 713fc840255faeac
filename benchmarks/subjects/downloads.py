"""Download of a file of 1 GiB against nginx with the same file."""

import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.content import GIBIBYTE, MEGABYTE, OWNER, Account, new_bytes, pointer_body
from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.hubs import ServedHub, populate, serving
from benchmarks.machine import tied_to
from benchmarks.nginx import find_nginx, serving_with_nginx
from benchmarks.processes import cpu_seconds
from benchmarks.rounds import request_bytes
from benchmarks.whole_contents import set_whole, wait_until_cut
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

_PATH = "large.bin"
_PIECE = 1 << 20
_GOAL = Goal(floor=0.5, aim=0.8, more_is_better=True, of="ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadSpeed:
    """Megabytes per second, by the clock and by the processor time of the server."""

    by_clock: float
    by_processor: float


def measure(bench: Workbench) -> Iterator[Row]:
    """Megabytes per second of a download of 1 GiB, as a share of what nginx gives."""
    program = find_nginx()
    if program is None:
        raise Spoiled("nginx is not installed, so there is nothing to hold a download against.")
    site = bench.site("SQLite")
    token = run_loop(populate(site.settings()))
    content = new_bytes(int(GIBIBYTE * bench.share))
    sha256 = content.sha256()
    core = bench.cores.server
    with serving(site, core=core) as hub:
        account = Account(hub=hub, token=token)
        account.create_repo("large")
        account.put_large("large", content, sha256=sha256)
        account.commit("large", pointer_body(_PATH, sha256=sha256, size=content.size))
        wait_until_cut(account, f"{OWNER}/large", _PATH)
        # As it was before the hub cut it: in one object, which the kernel sends.
        run_loop(set_whole(site.settings(), sha256, is_whole=True))
        file = _file_of(site.data_dir, sha256)
        with serving_with_nginx(program, site.folder / "nginx", file, core=core) as nginx:
            yield from _rows(bench, account, nginx, size=content.size)


def _file_of(data_dir: Path, sha256: str) -> Path:
    """Return the file that the hub itself serves: what one reads warms the other's cache."""
    found = list((data_dir / "blobs").rglob(sha256))
    if not found:
        raise Spoiled(f"The hub has no file of the name {sha256}.")
    return found[0]


def _rows(bench: Workbench, account: Account, nginx: ServedHub, *, size: int) -> Iterator[Row]:
    path = f"/{OWNER}/large/resolve/main/{_PATH}"
    places: list[tuple[ServedHub, str, Mapping[str, str]]] = [
        (account.hub, path, account.headers),
        (nginx, "/file", {}),
    ]
    taken: list[list[DownloadSpeed]] = [[], []]
    with tied_to(bench.cores.load):
        for number in range(-1, bench.rounds):
            for which, (server, where, headers) in enumerate(places):
                speed = download_speed(server, where, headers, size=size)
                # The first round warms up.
                if number >= 0:
                    taken[which].append(speed)
    subject = f"download of {size / MEGABYTE:,.0f} MB"
    yield _row(subject, [[each.by_clock for each in speeds] for speeds in taken])
    yield _row(
        f"{subject}, by processor time",
        [[each.by_processor for each in speeds] for speeds in taken],
    )


def _row(subject: str, speeds: list[list[float]]) -> Row:
    return compare(
        subject,
        ours=speeds[0],
        other=speeds[1],
        other_is="nginx with sendfile, one process, the same file",
        unit="MB/s",
        goal=_GOAL,
    )


def download_speed(
    server: ServedHub, path: str, headers: Mapping[str, str], *, size: int
) -> DownloadSpeed:
    request = request_bytes("GET", path, headers={**headers, "connection": "close"})
    before, start = cpu_seconds(server.child.id), time.perf_counter()
    received = _receive(server.port, request)
    seconds, spent = time.perf_counter() - start, cpu_seconds(server.child.id) - before
    if received < size:
        raise Spoiled(f"{path} gave {received} bytes of {size}.")
    # The processor's clock has steps of ten milliseconds.
    return DownloadSpeed(
        by_clock=size / MEGABYTE / seconds, by_processor=size / MEGABYTE / max(spent, 0.01)
    )


def _receive(port: int, request: bytes) -> int:
    """Read an answer to its end without looking at it; return how many bytes came."""
    received = 0
    piece = bytearray(_PIECE)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        while count := connection.recv_into(piece):
            if received == 0:
                _insist_on_a_good_status(bytes(piece[:count]))
            received += count
    return received


def _insist_on_a_good_status(begun: bytes) -> None:
    head = begun.partition(b"\r\n")[0]
    if not head.startswith(b"HTTP/1.1 200"):
        raise Spoiled(f"A download was answered with {head!r}.")
