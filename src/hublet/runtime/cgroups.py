"""Control groups: where attempts can have theirs, and the limits written into them."""

import re
from functools import cache
from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id

# Enough for any honest job, and an end for fork bombs.
MAX_PROCESSES = 2048
_PERIOD_MICROS = 100_000
_NEEDED = ("memory", "cpu", "pids")

NO_LIMITS = (
    "Limits of processor and processes are not kept, and that of memory only for each process by "
    "itself: the hub may not make control groups."
)

# A folder that the shim makes, and the files it writes there, in order.
GroupFiles = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A group of the hub's own under which it may make others, for these controllers."""

    folder: Path
    version: int
    controllers: tuple[str, ...]


@cache
def own_hierarchies() -> list[Hierarchy]:
    """Return where groups can be made on this machine; cached, because it is slow."""
    return find_hierarchies(Path("/proc/self"))


def find_hierarchies(proc: Path) -> list[Hierarchy]:
    """Return where groups can be made; empty when limits cannot be set on this machine.

    Always under the hub's own group: what limits the hub as a whole limits its jobs as well.
    """
    try:
        own = _own_groups((proc / "cgroup").read_text())
        places = _mounts((proc / "mountinfo").read_text())
    except OSError:
        return []
    found = [place for place in _v1_hierarchies(places, own) if _is_writable(place)]
    if {name for place in found for name in place.controllers} >= set(_NEEDED):
        return found
    second = _v2_hierarchy(places, own)
    return [second] if second and _is_writable(second) else []


def groups_for(
    hierarchies: list[Hierarchy], *, name: str, cores: float, memory_bytes: int
) -> list[GroupFiles]:
    return [
        (str(hierarchy.folder / name), _values(hierarchy, cores=cores, memory_bytes=memory_bytes))
        for hierarchy in hierarchies
    ]


def _values(hierarchy: Hierarchy, *, cores: float, memory_bytes: int) -> list[tuple[str, str]]:
    quota, memory = str(max(int(cores * _PERIOD_MICROS), 1000)), str(memory_bytes)
    if hierarchy.version == 2:  # noqa: PLR2004 - its name.
        return [
            ("memory.max", memory),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("cpu.max", f"{quota} {_PERIOD_MICROS}"),
            ("pids.max", str(MAX_PROCESSES)),
        ]
    files = {
        "memory": [("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory)],
        "cpu": [("cpu.cfs_period_us", str(_PERIOD_MICROS)), ("cpu.cfs_quota_us", quota)],
        "pids": [("pids.max", str(MAX_PROCESSES))],
    }
    return [value for name in hierarchy.controllers for value in files.get(name, [])]


def _own_groups(text: str) -> dict[str, str]:
    """Map each controller to the hub's own group; the empty name is version 2."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        found |= dict.fromkeys(names.split(","), path)
    return found


def _mounts(text: str) -> list[tuple[str, str, Path, str]]:
    """Return type, root, mount point and options of each cgroup file system."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            fields = left.split()
            place = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
            found.append((kind, fields[3], Path(place), options))
    return found


def _group_folder(root: str, place: Path, group: str) -> Path:
    """Return the folder of a group, where only a subtree of its file system is mounted."""
    below = group.removeprefix(root.rstrip("/")) if group.startswith(root) else "/"
    return place / below.lstrip("/")


def _v1_hierarchies(
    places: list[tuple[str, str, Path, str]], own: dict[str, str]
) -> list[Hierarchy]:
    """Return a hierarchy for each mounted controller; some share one."""
    found: dict[Path, Hierarchy] = {}
    for name in _NEEDED:
        for kind, root, place, options in places:
            if kind == "cgroup" and name in options.split(",") and name in own:
                folder = _group_folder(root, place, own[name])
                before = found[folder].controllers if folder in found else ()
                found[folder] = Hierarchy(folder=folder, version=1, controllers=(*before, name))
    return list(found.values())


def _v2_hierarchy(
    places: list[tuple[str, str, Path, str]], own: dict[str, str]
) -> Hierarchy | None:
    for kind, root, place, _ in places:
        if kind == "cgroup2" and "" in own:
            folder = _group_folder(root, place, own[""])
            # A group with processes may not have subgroups with limits: a service manager that
            # delegates a group puts the hub into a subgroup `hub`.
            folder = folder.parent if folder.name == "hub" else folder
            if _can_delegate(folder):
                return Hierarchy(folder=folder, version=2, controllers=_NEEDED)
    return None


def _can_delegate(folder: Path) -> bool:
    control = folder / "cgroup.subtree_control"
    try:
        if not set(_NEEDED) <= set(control.read_text().split()):
            control.write_text(" ".join(f"+{name}" for name in _NEEDED))
        return set(_NEEDED) <= set(control.read_text().split())
    except OSError:
        return False


def _is_writable(hierarchy: Hierarchy) -> bool:
    folder = hierarchy.folder / f"hublet-probe-{new_object_id()}"
    try:
        folder.mkdir()
        folder.rmdir()
    except OSError:
        return False
    return True
