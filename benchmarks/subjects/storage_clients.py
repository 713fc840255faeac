"""What uploads cost the stock client: memory for a large file, time for many small ones."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.content import MEGABYTE
from benchmarks.figures import Goal, Row, compare
from benchmarks.mixed_files import write_mixed, write_small_files
from benchmarks.storage_scene import StorageScene, storage_scene
from benchmarks.workbench import Workbench

_LARGE_BYTES = 5_000_000_000
_FILES = 10_000
_MOST_ROUNDS = 2
_MEMORY = Goal(floor=400, more_is_better=False, of="ours")
_TIME = Goal(floor=2.0, more_is_better=False, of="ratio")


def measure(bench: Workbench) -> Iterator[Row]:
    """Memory of the stock client for an upload of 5 GB, and its time for 10,000 small files."""
    with storage_scene(bench) as scene:
        yield _memory_row(scene)
    with storage_scene(bench) as scene:
        for suffix, kind in ((".txt", "text"), (".bin", "binary")):
            yield _files_row(scene, suffix, kind)


def _memory_row(scene: StorageScene) -> Row:
    size = int(_LARGE_BYTES * scene.bench.share)
    file = write_mixed(scene.folder / "large.bin", size)
    run = scene.client.upload(scene.new_repo("large"), file)
    return Row(
        subject=f"memory of the stock client, upload of {size / MEGABYTE:,.0f} MB",
        unit="MB",
        ours=run.megabytes,
        goal=_MEMORY,
        note=f"{size / MEGABYTE / run.seconds:.0f} MB/s by the clock",
    )


def _files_row(scene: StorageScene, suffix: str, kind: str) -> Row:
    count = int(_FILES * scene.bench.share)
    folder = write_small_files(scene.folder / kind, count, suffix=suffix)
    archive = _archive(folder)
    taken: list[tuple[float, float]] = []
    for number in range(min(scene.bench.rounds, _MOST_ROUNDS)):
        files, one = (scene.new_repo(f"{kind}-{what}-{number}") for what in ("files", "one"))
        taken.append(
            (
                scene.client.upload(files, folder).seconds,
                scene.client.upload(one, archive).seconds,
            )
        )
    return compare(
        f"upload of {count:,} small {kind} files by the stock client",
        ours=[files for files, _ in taken],
        other=[one for _, one in taken],
        other_is="one tar of them",
        unit="s",
        goal=_TIME,
    )


def _archive(folder: Path) -> Path:
    path = folder.with_suffix(".tar")
    with tarfile.open(path, "w") as archive:
        archive.add(folder, arcname=folder.name)
    return path
