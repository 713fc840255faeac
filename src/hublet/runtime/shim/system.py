"""System calls and /proc for the shim, without modules that take long to load."""

import ctypes
import os
import signal
from typing import Any

PIECE = 65536
_libc = ctypes.CDLL(None, use_errno=True)


def to_json(value: Any) -> str:
    """Encode plain values; the json module would take memory in each shim."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(k)}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if isinstance(value, str):
        plain = "".join(c if c.isprintable() else " " for c in value)
        return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "null" if value is None else str(value).lower()


def read(path: str) -> bytes:
    """Return the content of a small file; empty when it cannot be read."""
    data = b""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while chunk := os.read(fd, PIECE):
                data += chunk
        finally:
            os.close(fd)
    except OSError:
        return b""
    return data


def write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def start_time(pid: int) -> int:
    """Return when a process started, in ticks since the boot; 0 for none, or a zombie."""
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[19]) if fields and fields[0] not in {b"Z", b"X"} else 0


def call(name: str, *arguments: int | bytes | None) -> None:
    if _libc[name](*arguments) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib is much to load.
    except OSError:
        return found
    for task in tasks:
        for child in read(f"/proc/{pid}/task/{task}/children").split():
            found += [int(child), *descendants(int(child))]
    return found


def refused_processes(group: str) -> int:
    """Return the process limit of a control group, if it was hit; else 0."""
    events = read(f"{group}/pids.events").split()
    limit = read(f"{group}/pids.max").strip()
    return int(limit) if events[1:2] not in ([], [b"0"]) and limit.isdigit() else 0


def killed_for_memory(group: str) -> bool:
    """Tell whether the kernel killed something in a control group; both versions count that."""
    counts = read(f"{group}/memory.events") + read(f"{group}/memory.oom_control")
    return any(
        line.startswith(b"oom_kill ") and line.split()[1] != b"0" for line in counts.splitlines()
    )
