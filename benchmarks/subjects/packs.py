"""Git with packs in an object storage and a cache on each node, against a folder of one node.

Both are measured in turn, with the same git against the same processes: the ratio is what the storage
costs. A cold node has nothing of the repository; pushes alternate, so each fetches the other's pack first.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.content import OWNER, Account
from benchmarks.figures import Row, Spoiled
from benchmarks.hubs import ServedHub, populate
from benchmarks.nodes import Cluster, api_nodes, object_storage, storage_url
from benchmarks.processes import clean_environment
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

_NODES = 2
_PUSHES = 40
_FILES = 2_000
_LARGE_BYTES = 64_000_000
_SECONDS = 300.0
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@hub.test"))
}


def measure(bench: Workbench) -> Iterator[Row]:
    """Small and large pushes, cold and warm clones: packs in an object storage against a folder."""
    with object_storage(bench.folder / "objects") as endpoint, _both(bench, endpoint) as hubs:
        yield from _small_pushes(bench, hubs)
        yield from _clones(bench, hubs, "many")
        yield from _large(bench, hubs)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitNodes:
    """The nodes of one hub, and a clone that is pushed to them."""

    folder: Path
    cluster: Cluster
    hubs: list[ServedHub]
    token: str

    def url(self, name: str, node: int) -> str:
        hub = self.hubs[node % len(self.hubs)]
        return f"http://git:{self.token}@127.0.0.1:{hub.port}/{OWNER}/{name}"

    def begin(self, name: str) -> Path:
        Account(hub=self.hubs[0], token=self.token).create_repo(name)
        git(self.folder, "clone", "-q", self.url(name, 0), name)
        return self.folder / name

    def push(self, name: str, files: dict[str, bytes], *, node: int) -> float:
        """Commit files and push them to a node; return the seconds of the push."""
        work = self.folder / name
        for path, content in files.items():
            (work / path).write_bytes(content)
        git(work, "add", ".")
        git(work, "commit", "-q", "-m", "Change.")
        return git(work, "push", "-q", self.url(name, node), "HEAD:main")

    def clone(self, name: str, *, is_cold: bool) -> float:
        """Clone from the last node, which has nothing of the repository if it is cold."""
        if is_cold:
            cached = self.cluster.node(len(self.hubs) - 1).data_dir / "repos"
            shutil.rmtree(cached, ignore_errors=True)
        target = self.folder / "cloned"
        shutil.rmtree(target, ignore_errors=True)
        return git(self.folder, "clone", "-q", "--bare", self.url(name, -1), str(target))


def git(folder: Path, *arguments: str) -> float:
    """Run git, and return its seconds."""
    variables = _IDENTITY | {"GIT_TERMINAL_PROMPT": "0", "HOME": str(folder)}
    began = time.perf_counter()
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=clean_environment() | variables,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise Spoiled(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace')}")
    return seconds


@contextmanager
def _both(bench: Workbench, endpoint: str) -> Iterator[tuple[GitNodes, GitNodes]]:
    """Run nodes with an object storage, and one node with a folder, each on a database of its own."""
    with ExitStack() as stack:
        hubs = []
        for is_stored in (True, False):
            site = bench.site("PostgreSQL")
            token = run_loop(populate(site.settings()))
            own = site.folder / "node-0" / "data"
            where = storage_url(endpoint) if is_stored else f"file://{own}"
            cluster = Cluster(site=site, storage_url=where)
            nodes = api_nodes(cluster, _NODES if is_stored else 1, share=1.0)
            folder = site.folder / "clones"
            folder.mkdir()
            hub = GitNodes(
                folder=folder, cluster=cluster, hubs=stack.enter_context(nodes), token=token
            )
            hubs.append(hub)
        yield hubs[0], hubs[1]


def _small_pushes(bench: Workbench, hubs: tuple[GitNodes, GitNodes]) -> Iterator[Row]:
    many = {f"{number}.txt": os.urandom(60) for number in range(_file_count(bench))}
    for hub in hubs:
        hub.begin("many")
        hub.push("many", many, node=0)

    def once(number: int) -> tuple[float, float]:
        change = {"0.txt": os.urandom(60)}
        stored, local = (hub.push("many", change, node=number) for hub in hubs)
        return stored, local

    pairs = [once(number) for number in range(_push_count(bench))]
    yield _row("small push, on alternating nodes", pairs)


def _clones(bench: Workbench, hubs: tuple[GitNodes, GitNodes], name: str) -> Iterator[Row]:
    stored, local = hubs
    for is_cold in (True, False):
        pairs = [
            (stored.clone(name, is_cold=is_cold), local.clone(name, is_cold=False))
            for _ in range(2 * bench.rounds + 1)
        ]
        # The first one warms both up.
        temperature = "cold" if is_cold else "warm"
        yield _row(f"clone of {_content(bench, name)}, {temperature} node", pairs[1:])


def _content(bench: Workbench, name: str) -> str:
    if name == "large":
        return f"{_large_size(bench) / 1e6:.0f} MB"
    return f"{_file_count(bench):,} files in {_push_count(bench) + 1} packs"


def _file_count(bench: Workbench) -> int:
    return max(10, int(_FILES * bench.share))


def _push_count(bench: Workbench) -> int:
    return max(2, int(_PUSHES * bench.share))


def _large_size(bench: Workbench) -> int:
    return max(100_000, int(_LARGE_BYTES * bench.share))


def _large(bench: Workbench, hubs: tuple[GitNodes, GitNodes]) -> Iterator[Row]:
    size = _large_size(bench)
    for hub in hubs:
        hub.begin("large")
        (hub.folder / "large" / ".gitattributes").unlink(missing_ok=True)

    def once(number: int) -> tuple[float, float]:
        # Each file is below the size from which the hub wants it in LFS.
        parts = {f"{part}.bin": os.urandom(size // 8) for part in range(8)}
        stored, local = (hub.push("large", parts, node=number) for hub in hubs)
        return stored, local

    first = [once(0)]
    yield from _clones(bench, hubs, "large")
    yield _row(
        f"push of a pack of {_content(bench, 'large')}",
        first + [once(number) for number in range(1, bench.rounds)],
    )


def _row(subject: str, pairs: list[tuple[float, float]]) -> Row:
    stored, local = ([each * 1000 for each in column] for column in zip(*pairs, strict=True))
    return Row(
        subject=f"packs: {subject}",
        unit="ms",
        ours=median(stored),
        other=median(local),
        other_is="a folder",
        ratios=tuple(ours / other for ours, other in zip(stored, local, strict=True)),
        note=f"at most {max(stored):.0f} and {max(local):.0f} ms",
    )
