"""One file of 1 GiB: through the commit endpoint itself, and as a large file put before it."""

import base64
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.content import GIBIBYTE, MEGABYTE, Account, Bytes, inline_body, new_bytes
from benchmarks.figures import Goal, Row, compare
from benchmarks.hubs import populate, serving
from benchmarks.machine import tied_to
from benchmarks.processes import megabytes_of
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

# Each round leaves another file on the disk.
_MOST_ROUNDS = 2
_PATH = "large.bin"
_MEMORY = Goal(floor=250, more_is_better=False, of="ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a file gets to the hub, and how its bytes come out of what was sent."""

    name: str
    send: Callable[[Account, str, Bytes, str], None]
    decode: Callable[[Bytes], Iterable[bytes]]


def _send_inline(account: Account, repo: str, content: Bytes, _sha256: str) -> None:
    account.commit(repo, inline_body(_PATH, content))


def _send_large(account: Account, repo: str, content: Bytes, sha256: str) -> None:
    account.put_large(repo, content, sha256=sha256)


def _decoded(content: Bytes) -> Iterator[bytes]:
    return map(base64.b64decode, content.encoded())


_WAYS = (
    _Way(name="inline", send=_send_inline, decode=_decoded),
    _Way(name="LFS", send=_send_large, decode=Bytes.pieces),
)


def measure(bench: Workbench) -> Iterator[Row]:
    """Peak memory of the server, and the speed, while a file of 1 GiB is uploaded."""
    for way in _WAYS:
        yield from _rows(bench, way)


def _rows(bench: Workbench, way: _Way) -> Iterator[Row]:
    site = bench.site("SQLite")
    token = run_loop(populate(site.settings()))
    size = int(GIBIBYTE * bench.share)
    # A server of its own: the peak is that of everything the process ever did.
    with serving(site, core=bench.cores.server) as hub:
        account = Account(hub=hub, token=token)
        rest = megabytes_of(hub.child.id)["VmRSS"]
        rates = [
            _rates(bench, account, way, f"large-{number}", new_bytes(size))
            for number in range(min(bench.rounds, _MOST_ROUNDS))
        ]
        peak = megabytes_of(hub.child.id)["VmHWM"]
    subject = f"upload of {size / MEGABYTE:,.0f} MB, {way.name}"
    yield Row(
        subject=f"{subject}, memory at the most",
        unit="MB",
        ours=peak,
        goal=_MEMORY,
        note=f"{rest:.0f} MB at rest",
    )
    yield compare(
        subject,
        ours=[ours for ours, _ in rates],
        other=[other for _, other in rates],
        other_is="the same bytes from memory, decoded, digested and synced to the disk by hand",
        unit="MB/s",
    )


def _rates(
    bench: Workbench, account: Account, way: _Way, repo: str, content: Bytes
) -> tuple[float, float]:
    """Return the megabytes per second of the hub and of the work by hand."""
    account.create_repo(repo)
    sha256 = content.sha256()
    megabytes = content.size / MEGABYTE
    with tied_to(bench.cores.load):
        start = time.perf_counter()
        way.send(account, repo, content, sha256)
        ours = megabytes / (time.perf_counter() - start)
    with tied_to(bench.cores.server):
        start = time.perf_counter()
        _keep(way.decode(content), bench.folder)
        return ours, megabytes / (time.perf_counter() - start)


def _keep(pieces: Iterable[bytes], folder: Path) -> None:
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=folder) as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
