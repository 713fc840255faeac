"""Downloads of what lies in chunks, against the same bytes in one object, which the kernel sends."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.content import MEGABYTE
from benchmarks.figures import Goal, Row, compare
from benchmarks.machine import tied_to
from benchmarks.mixed_files import write_mixed
from benchmarks.stock_client import WITHOUT_XET
from benchmarks.storage_scene import StorageScene, storage_scene
from benchmarks.subjects.downloads import DownloadSpeed, download_speed
from benchmarks.whole_contents import put_whole, set_whole
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

_GIGABYTE = 1_000_000_000
_PIECE = 1 << 20
_MOST_ROUNDS = 3
_GOAL = Goal(floor=0.6, more_is_better=True, of="ratio")


def measure(bench: Workbench) -> Iterator[Row]:
    """Downloads of 1 GB in chunks, by Xet and by plain HTTP, as a share of what sendfile gives."""
    with storage_scene(bench) as scene, tied_to(bench.cores.load):
        repo = scene.new_repo("large")
        file = write_mixed(scene.folder / "large.bin", int(_GIGABYTE * bench.share))
        scene.client.upload(repo, file)
        sha256 = put_whole(scene.settings, _pieces_of(file))
        speeds: dict[str, list[DownloadSpeed]] = {}
        for _ in range(min(bench.rounds, _MOST_ROUNDS)):
            for name, speed in _round(scene, repo, file, sha256):
                speeds.setdefault(name, []).append(speed)
        yield from _rows(speeds, file.stat().st_size / MEGABYTE)


def _pieces_of(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        yield from iter(partial(source.read, _PIECE), b"")


def _round(
    scene: StorageScene, repo: str, file: Path, sha256: str
) -> Iterator[tuple[str, DownloadSpeed]]:
    """Download in all ways, first from chunks, then from one object."""
    path, size = f"/{repo}/resolve/main/{file.name}", file.stat().st_size
    for is_whole in (False, True):
        run_loop(set_whole(scene.settings, sha256, is_whole=is_whole))
        where = "whole" if is_whole else "chunks"
        variables = WITHOUT_XET if is_whole else {}
        yield f"client, {where}", _by_client(scene, repo, file, variables)
        plain = download_speed(scene.hub, path, scene.account.headers, size=size)
        yield f"plain, {where}", plain


def _by_client(
    scene: StorageScene, repo: str, file: Path, variables: Mapping[str, str]
) -> DownloadSpeed:
    megabytes = file.stat().st_size / MEGABYTE
    before = scene.cpu_seconds
    run = scene.client.download(repo, file.name, variables=variables)
    spent = scene.cpu_seconds - before
    return DownloadSpeed(
        by_clock=megabytes / run.seconds, by_processor=megabytes / max(spent, 0.01)
    )


def _rows(speeds: Mapping[str, list[DownloadSpeed]], megabytes: float) -> Iterator[Row]:
    for way, name, goal in (
        ("client", "by the stock client and Xet", _GOAL),
        ("plain", "by plain HTTP, put together", None),
    ):
        ours, other = speeds[f"{way}, chunks"], speeds[f"{way}, whole"]
        row = partial(
            compare,
            unit="MB/s",
            other_is="the same from one object, which the kernel sends, without Xet",
        )
        subject = f"download of {megabytes:,.0f} MB in chunks, {name}"
        yield row(
            subject,
            ours=[each.by_clock for each in ours],
            other=[each.by_clock for each in other],
            goal=goal,
        )
        yield row(
            f"{subject}, by processor time of the server",
            ours=[each.by_processor for each in ours],
            other=[each.by_processor for each in other],
        )
