"""Large files by the stock client: what they cost the server, and what a changed copy sends."""

from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from benchmarks.content import MEGABYTE
from benchmarks.figures import Goal, Row
from benchmarks.machine import tied_to
from benchmarks.mixed_files import write_changed, write_mixed
from benchmarks.process_trees import PeakMemory, watching_memory
from benchmarks.stock_client import insist_on_success
from benchmarks.storage_scene import StorageScene, relayed_storage_scene, storage_scene
from benchmarks.workbench import Workbench

_GIGABYTE = 1_000_000_000
_CHANGED_BYTES = 100_000_000
_AT_ONCE = 8
# Each round leaves another copy of what it has uploaded on the disk.
_MOST_ROUNDS = 3
_PER_CORE = Goal(floor=150, more_is_better=True, of="ours")
_MEMORY = Goal(floor=250, more_is_better=False, of="ours")
_SENT = Goal(floor=1.0, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Uploads of 1 GB by the stock client: processor and memory of the server, a changed copy."""
    with storage_scene(bench) as scene, tied_to(bench.cores.load):
        yield _upload_row(scene)
    with storage_scene(bench) as scene:
        yield _memory_row(scene)
    with tied_to(bench.cores.load):
        yield from _changed_rows(bench)


def _upload_row(scene: StorageScene) -> Row:
    size = int(_GIGABYTE * scene.bench.share)
    file = write_mixed(scene.folder / "large.bin", size)
    by_processor, by_clock = [], []
    for number in range(min(scene.bench.rounds, _MOST_ROUNDS)):
        repo = scene.new_repo(f"large-{number}")
        before = scene.cpu_seconds
        run = scene.client.upload(repo, file)
        by_processor.append(size / MEGABYTE / (scene.cpu_seconds - before))
        by_clock.append(size / MEGABYTE / run.seconds)
    return Row(
        subject=f"Xet: upload of {size / MEGABYTE:,.0f} MB, by processor time of the server",
        unit="MB/s",
        ours=median(by_processor),
        goal=_PER_CORE,
        note=f"{median(by_clock):.0f} MB/s by the clock, client and server on a core each; "
        f"all rounds: {', '.join(f'{each:.0f}' for each in by_processor)}",
    )


def _memory_row(scene: StorageScene) -> Row:
    size = int(_GIGABYTE * scene.bench.share) // _AT_ONCE
    files = [write_mixed(scene.folder / f"part-{number}.bin", size) for number in range(_AT_ONCE)]
    rest = PeakMemory()
    rest.take(scene.hub.child.id)
    with watching_memory(scene.hub.child.id) as peak, ExitStack() as stack:
        uploads = [
            stack.enter_context(scene.client.starting_upload(scene.new_repo(file.stem), file))
            for file in files
        ]
        for upload in uploads:
            insist_on_success(upload)
    return Row(
        subject=f"Xet: memory of the server, {_AT_ONCE} uploads of {size / MEGABYTE:,.0f} MB at once",
        unit="MB",
        ours=peak.all,
        goal=_MEMORY,
        note=f"{rest.all:.0f} MB at rest; {peak.anonymous:.0f} MB without pages of files",
    )


def _changed_rows(bench: Workbench) -> Iterator[Row]:
    size = int(_CHANGED_BYTES * bench.share)
    with relayed_storage_scene(bench) as (scene, relay):
        original = write_mixed(scene.folder / "one.bin", size)
        changed = write_changed(original, scene.folder / "two.bin")
        home = scene.client.new_home()
        for name, homes in (("", (home, home)), (", on another machine", (None, None))):
            repo = scene.new_repo(f"changed{len(name)}")
            scene.client.upload(repo, original, home=homes[0])
            before = relay.sent
            scene.client.upload(repo, changed, home=homes[1])
            yield Row(
                subject=f"Xet: what a changed copy of {size / MEGABYTE:,.0f} MB sends{name}",
                unit="%",
                ours=(relay.sent - before) / size * 100,
                goal=_SENT,
                note=f"{relay.sent - before:,} bytes",
            )
