"""A process and all that it started: the processor time and the memory of them together."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PAUSE_SECONDS = 0.05
_GONE = (FileNotFoundError, ProcessLookupError)


def tree_of(process_id: int) -> list[int]:
    """Return a process and those below it."""
    found = [process_id]
    for each in found:
        with suppress(*_GONE):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def cpu_seconds_of_tree(process_id: int) -> float:
    """Return the processor time of all processes so far, those that have ended too."""
    ticks = 0
    for each in tree_of(process_id):
        with suppress(*_GONE):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            # Its own time, and that of children it has waited for.
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class PeakMemory:
    """The most memory of a tree so far, in megabytes; what processes share counts once."""

    def __init__(self) -> None:
        self.all = 0.0
        # Without the pages of files, which the system takes back when it needs them.
        self.anonymous = 0.0

    def take(self, process_id: int) -> None:
        sizes = [_sizes(each) for each in tree_of(process_id)]
        self.all = max(self.all, sum(each.get("Pss", 0) for each in sizes) / 1024)
        self.anonymous = max(self.anonymous, sum(each.get("Pss_Anon", 0) for each in sizes) / 1024)


def _sizes(process_id: int) -> dict[str, int]:
    """Return the kilobytes of a process by the names of the system; nothing of one that is gone."""
    with suppress(*_GONE):
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()[1:]
        return {name: int(value.split()[0]) for name, _, value in (x.partition(":") for x in lines)}
    return {}


@contextmanager
def watching_memory(process_id: int) -> Iterator[PeakMemory]:
    """Look at the memory of a tree again and again until the body ends."""
    peak, over = PeakMemory(), threading.Event()

    def watch() -> None:
        while not over.is_set():
            peak.take(process_id)
            over.wait(_PAUSE_SECONDS)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()
