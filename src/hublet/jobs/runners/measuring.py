"""What an attempt uses: from its control groups, else added up over its processes."""

import os
from collections.abc import Sequence
from typing import Any

from hublet.core import clock
from hublet.core.light_dataclasses import dataclass
from hublet.jobs.runners.identity import identity_of
from hublet.jobs.runners.records import Usage
from hublet.jobs.runners.shim.system import descendants, read

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = 1_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    at: float
    # Since the attempt began.
    cpu_micros: int
    memory_bytes: int


def sample_of(status: dict[str, Any] | None) -> Sample | None:
    """Look at an attempt; None when it does not run."""
    if status is None or status["phase"] != "running" or not identity_of(status).lives():
        return None
    groups: Sequence[str] = status.get("groups") or []
    pids = descendants(status["pid"])
    cpu = next((found for group in groups if (found := _cpu(group)) is not None), None)
    memory = next((found for group in groups if (found := _memory(group)) is not None), None)
    return Sample(
        at=clock.monotonic(),
        cpu_micros=sum(map(_process_cpu, pids)) if cpu is None else cpu,
        memory_bytes=sum(map(_process_memory, pids)) if memory is None else memory,
    )


def usage_between(before: Sample | None, after: Sample) -> Usage:
    """Return what was used between two looks; the first look can only tell the memory."""
    cores = 0.0
    if before and after.at > before.at:
        cores = max(after.cpu_micros - before.cpu_micros, 0) / (after.at - before.at) / 1_000_000
    return Usage(cpu_millicores=round(cores * 1000), memory_bytes=after.memory_bytes)


def _cpu(group: str) -> int | None:
    if first := read(f"{group}/cpuacct.usage"):
        return int(first) // 1000
    second = dict(_pairs(read(f"{group}/cpu.stat")))
    return second.get(b"usage_usec")


def _memory(group: str) -> int | None:
    used = read(f"{group}/memory.current") or read(f"{group}/memory.usage_in_bytes")
    if not used:
        return None
    # Files that were read may be dropped at any time: nobody counts them as used.
    kept = dict(_pairs(read(f"{group}/memory.stat")))
    return max(int(used) - kept.get(b"total_inactive_file", kept.get(b"inactive_file", 0)), 0)


def _pairs(text: bytes) -> list[tuple[bytes, int]]:
    return [(name, int(value)) for name, value in map(bytes.split, text.splitlines())]


def _process_cpu(pid: int) -> int:
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK if fields else 0


def _process_memory(pid: int) -> int:
    fields = read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0
