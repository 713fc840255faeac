"""What an attempt leaves behind when its shim was killed: processes, control groups, a folder."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from hublet.core import clock
from hublet.core.logs import get_logger
from hublet.jobs import folders
from hublet.jobs.runners.records import Phase
from hublet.jobs.runners.shim.system import kill, read, write

log = get_logger("jobs")

# Set for plain processes: it tells what an attempt started, however far that went away.
MARK = "HUBLET_ATTEMPT"
_PATIENCE_SECONDS = 5.0


def end(folder: Path, status: dict[str, Any]) -> None:
    """Kill everything of an attempt that nobody looks after any more, and free its groups.

    Nothing is left of one whose shim saw it to its end, so nothing is looked for.
    """
    deadline = clock.monotonic() + _PATIENCE_SECONDS
    groups = [Path(group) for group in status.get("groups") or []]
    is_left = status["phase"] != Phase.exited
    while is_left and clock.monotonic() < deadline:
        is_left = _kill_groups(groups) or _kill_marked(folder)
    for group in groups:
        with suppress(OSError):
            group.rmdir()


def remove(folder: Path) -> None:
    """Remove a folder in which a job may have closed whatever it liked; it may be gone already.

    What cannot be removed is left: nobody waits for it, and the place of the attempt is free.
    """
    try:
        folders.remove(folder)
    except OSError as error:
        log.warning("what an attempt left stays", folder=str(folder), error=str(error))


def _kill_groups(groups: list[Path]) -> bool:
    found = False
    for group in groups:
        pids = read(f"{group}/cgroup.procs").split()
        found = found or bool(pids)
        if not write(f"{group}/cgroup.kill", "1"):
            for pid in pids:
                kill(int(pid))
    return found


def _kill_marked(folder: Path) -> bool:
    mark = f"{MARK}={folder}".encode()
    pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    found = [pid for pid in pids if mark in read(f"/proc/{pid}/environ").split(b"\0")]
    for pid in found:
        kill(pid)
    return bool(found)
