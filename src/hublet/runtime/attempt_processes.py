"""Processes of an attempt: where to attach, what they use, and removal of leftovers."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hublet.core import clock, folders
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.jobs.records import Phase, Usage
from hublet.runtime.attempt_folder import ProcessIdentity, boot_id, identity_of
from hublet.runtime.records import AttachPoint
from hublet.runtime.shim.system import descendants, kill, read, start_time, write

log = get_logger("jobs")

# Environment variable of plain processes: it marks all descendants of an attempt, even daemons.
ATTEMPT_VARIABLE = "HUBLET_ATTEMPT"
_KILL_SECONDS = 5.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_DISK_COUNTS = frozenset({b"read_bytes", b"write_bytes"})
_TICK = 1_000_000 // os.sysconf("SC_CLK_TCK")


def attach_point_of(status: dict[str, Any] | None, *, is_plain: bool) -> AttachPoint | None:
    """Return where to attach to an attempt of a shim; None: it does not run, or is not set up yet."""
    if status is None or status["phase"] != "running" or not identity_of(status).lives():
        return None
    pid = status["main"] if is_plain else _first_process(status["main"])
    return _attach_point(pid, groups=status.get("groups") or ())


def attach_point_of_container(pid: int, container: str) -> AttachPoint | None:
    """Return where to attach to a container; None: it has ended, or its engine is elsewhere.

    The pid from an engine on another machine belongs to some other process here. The process of
    the container is in a control group, or has mounts, with the container's name.
    """
    groups_and_mounts = read(f"/proc/{pid}/cgroup") + read(f"/proc/{pid}/mountinfo")
    return (
        _attach_point(pid, container=container) if container.encode() in groups_and_mounts else None
    )


def _first_process(bubblewrap: int) -> int:
    """Return the init process of the sandbox; 0 as long as it has not started the job."""
    children = _children(bubblewrap)
    return children[0] if children and _children(children[0]) else 0


def _children(pid: int) -> list[int]:
    return [int(child) for child in read(f"/proc/{pid}/task/{pid}/children").split()]


def _attach_point(
    pid: int, *, groups: Sequence[str] = (), container: str | None = None
) -> AttachPoint | None:
    # The start comes first: if it still holds at the end, all that was read is of this process.
    process = ProcessIdentity(pid=pid, start=start_time(pid), boot=boot_id())
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        network, own = (Path(f"/proc/{each}/ns/net").readlink() for each in (pid, "self"))
    except OSError:
        return None
    user = next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))
    attach_point = AttachPoint(
        process=process,
        user=user,
        groups=tuple(groups),
        has_own_network=network != own,
        container=container,
    )
    return attach_point if process.lives() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSample:
    at: float
    # These and all others since the attempt began, except for the memory.
    cpu_micros: int
    memory_bytes: int
    disk_bytes: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0


def sample_usage(status: dict[str, Any] | None) -> UsageSample | None:
    """Measure what an attempt has used so far; None when it does not run."""
    if status is None or status["phase"] != "running" or not identity_of(status).lives():
        return None
    groups: Sequence[str] = status.get("groups") or []
    pids = descendants(status["pid"])
    cpu = next((found for group in groups if (found := _group_cpu(group)) is not None), None)
    memory = next((found for group in groups if (found := _group_memory(group)) is not None), None)
    received, sent = network_bytes(pids)
    return UsageSample(
        at=clock.monotonic(),
        cpu_micros=sum(map(_process_cpu, pids)) if cpu is None else cpu,
        memory_bytes=sum(map(_process_memory, pids)) if memory is None else memory,
        disk_bytes=sum(map(process_disk, pids)),
        received_bytes=received,
        sent_bytes=sent,
    )


def usage_between(before: UsageSample | None, after: UsageSample) -> Usage:
    """Return the usage between two samples; the first sample alone has only its memory."""
    if before is None or after.at <= before.at:
        return Usage(cpu_millicores=0, memory_bytes=after.memory_bytes)
    seconds = after.at - before.at

    def rate(old: int, new: int) -> int:
        return round(max(new - old, 0) / seconds)

    return Usage(
        # Microseconds of a second are millionths of a core.
        cpu_millicores=round(rate(before.cpu_micros, after.cpu_micros) / 1000),
        memory_bytes=after.memory_bytes,
        disk_per_second=rate(before.disk_bytes, after.disk_bytes),
        received_per_second=rate(before.received_bytes, after.received_bytes),
        sent_per_second=rate(before.sent_bytes, after.sent_bytes),
    )


def _group_cpu(group: str) -> int | None:
    if first := read(f"{group}/cpuacct.usage"):
        return int(first) // 1000
    second = dict(_parse_pairs(read(f"{group}/cpu.stat")))
    return second.get(b"usage_usec")


def _group_memory(group: str) -> int | None:
    used = read(f"{group}/memory.current") or read(f"{group}/memory.usage_in_bytes")
    if not used:
        return None
    # The kernel may drop inactive file pages at any time: they do not count as used.
    stats = dict(_parse_pairs(read(f"{group}/memory.stat")))
    return max(int(used) - stats.get(b"total_inactive_file", stats.get(b"inactive_file", 0)), 0)


def _parse_pairs(text: bytes) -> list[tuple[bytes, int]]:
    return [(name, int(value)) for name, value in map(bytes.split, text.splitlines())]


def _process_cpu(pid: int) -> int:
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK if fields else 0


def _process_memory(pid: int) -> int:
    fields = read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def process_disk(pid: int) -> int:
    """Return what a process and those that it waited for read from disks and wrote to them."""
    counts = (line.partition(b": ") for line in read(f"/proc/{pid}/io").splitlines())
    return sum(int(count) for name, _, count in counts if name in _DISK_COUNTS)


def network_bytes(pids: Sequence[int]) -> tuple[int, int]:
    """Return what an attempt received and sent; nothing where it shares the network of the hub."""
    own = _network_of("self")
    inside = next((pid for pid in pids if _network_of(pid) not in {own, None}), None)
    if inside is None:
        return 0, 0
    lines = read(f"/proc/{inside}/net/dev").splitlines()[2:]
    fields = [
        line.partition(b":")[2].split() for line in lines if line.split(b":")[0].strip() != b"lo"
    ]
    return sum(int(each[0]) for each in fields), sum(int(each[8]) for each in fields)


def _network_of(process: int | str) -> str | None:
    try:
        return str(Path(f"/proc/{process}/ns/net").readlink())
    except OSError:
        return None


def kill_leftovers(folder: Path, status: dict[str, Any]) -> None:
    """Kill all processes of an attempt without a shim, and remove its control groups.

    A shim that reported the exit has killed everything itself, so nothing is searched for then.
    """
    deadline = clock.monotonic() + _KILL_SECONDS
    groups = [Path(group) for group in status.get("groups") or []]
    is_left = status["phase"] != Phase.exited
    while is_left and clock.monotonic() < deadline:
        is_left = _kill_groups(groups) or _kill_marked(folder)
    for group in groups:
        with suppress(OSError):
            group.rmdir()


def remove_folder(folder: Path) -> None:
    """Remove the folder of an attempt, whatever permissions the job has set; it may be gone already.

    A failure is logged only: nobody waits for the removal.
    """
    try:
        folders.remove_tree(folder)
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
    mark = f"{ATTEMPT_VARIABLE}={folder}".encode()
    pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    found = [pid for pid in pids if mark in read(f"/proc/{pid}/environ").split(b"\0")]
    for pid in found:
        kill(pid)
    return bool(found)
