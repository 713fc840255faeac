"""Where the inside of an attempt is: a process with its namespaces, seen from this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hublet.jobs.runners.identity import Identity, boot_id, identity_of
from hublet.jobs.runners.records import Inside
from hublet.jobs.runners.shim.system import read, start_time


def inside_of(status: dict[str, Any] | None, *, is_plain: bool) -> Inside | None:
    """Return the way into an attempt of a shim; None: it does not run, or is not set up yet."""
    if status is None or status["phase"] != "running" or not identity_of(status).lives():
        return None
    pid = status["main"] if is_plain else _first_process(status["main"])
    return _inside(pid, groups=status.get("groups") or ())


def inside_of_container(pid: int, container: str) -> Inside | None:
    """Return the way into a container; None: it has ended, or its engine is elsewhere.

    The number that an engine on another machine tells is somebody else's here. The process of
    the container is in a group, or has mounts, that carry the container's name.
    """
    about = read(f"/proc/{pid}/cgroup") + read(f"/proc/{pid}/mountinfo")
    return _inside(pid, container=container) if container.encode() in about else None


def _first_process(bubblewrap: int) -> int:
    """Return the first process of the job's own view; 0 as long as it has not begun the job."""
    children = _children(bubblewrap)
    return children[0] if children and _children(children[0]) else 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def _inside(pid: int, *, groups: Sequence[str] = (), container: str | None = None) -> Inside | None:
    # The start is read first: of all that is read later the identity tells whose it was.
    process = Identity(pid=pid, start=start_time(pid), boot=boot_id())
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        network, own = (Path(f"/proc/{each}/ns/net").readlink() for each in (pid, "self"))
    except OSError:
        return None
    user = next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))
    inside = Inside(
        process=process,
        user=user,
        groups=tuple(groups),
        has_own_network=network != own,
        container=container,
    )
    return inside if process.lives() else None
