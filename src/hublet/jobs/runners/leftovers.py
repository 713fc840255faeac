"""What an attempt leaves behind when its shim was killed: processes, control groups, a folder."""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hublet.core import clock
from hublet.jobs.runners.records import Phase
from hublet.jobs.runners.shim.system import kill, read, write

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
    """Remove a folder in which a job may have closed whatever it liked; it may be gone already."""
    try:
        _remove_shallow(folder)
    except OSError:
        _remove_deep(folder)


def _remove_shallow(folder: Path) -> None:
    """Remove what most attempts leave: a few files and empty folders."""
    for entry in list(os.scandir(folder)):
        remove_one = os.rmdir if entry.is_dir(follow_symlinks=False) else os.unlink
        remove_one(entry.path)
    folder.rmdir()


def _remove_deep(folder: Path) -> None:

    def open_up(again: Callable[[str], object], path: str, _: object) -> None:
        with suppress(FileNotFoundError):
            Path(path).parent.chmod(stat.S_IRWXU)
            if Path(path).is_dir() and not Path(path).is_symlink():
                Path(path).chmod(stat.S_IRWXU)
                shutil.rmtree(path, ignore_errors=True)
            else:
                again(path)

    if folder.exists():
        shutil.rmtree(folder, onerror=open_up)
    shutil.rmtree(folder, ignore_errors=True)


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
