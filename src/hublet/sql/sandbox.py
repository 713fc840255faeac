"""Sandbox of a query: how its process is started, and what it sees of the machine.

Two kinds: bubblewrap with read-only mounts, or, where that does not work, a process without rights that
gets descriptors: as root those of the files themselves and another user, else those of private copies
that have no name any more (decision 0084).
"""

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.runtime import seccomp
from hublet.runtime.sandbox.runner import user_of
from hublet.runtime.shim.child import STAGE
from hublet.runtime.volumes.checkouts import copy_file
from hublet.sql import program, statistics_program

_INNER_USER = 1000
# The folder of the program inside of the sandbox.
_PROGRAM = "/program"
_MODULES = ("duckdb", "msgspec", "pyarrow", "numpy")
_SYSTEM = ("usr", "lib", "lib64", "lib32", "bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    name: str
    format: str
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOrder:
    id: str
    task: str
    views: tuple[ChildView, ...] = ()
    sql: str = ""
    format: str = "json"
    rows: int = 0
    bytes: int = 0
    seconds: float
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What holds children on this machine."""

    # The path of bubblewrap; None: a process without it.
    bubblewrap: str | None
    sentence: str


def start(
    sandbox: Sandbox, order: ChildOrder, *, deadline: float
) -> AbstractAsyncContextManager[Process]:
    """Start the process of an order; the deadline is a time of the monotonic clock."""
    user = user_of(order.id) if os.geteuid() == 0 else 0
    if sandbox.bubblewrap is not None:
        return _in_bubblewrap(sandbox.bubblewrap, order, deadline=deadline, user=user)
    return _with_descriptors(order, deadline=deadline, user=user)


@asynccontextmanager
async def _in_bubblewrap(
    bubblewrap: str, order: ChildOrder, *, deadline: float, user: int
) -> AsyncIterator[Process]:
    names = _data_names(order)
    mounts = [*python_mounts(), *((path, name) for paths in names for path, name in paths)]
    staged = [str(source) for source, _ in mounts] if user else []
    options = [*_namespace_options(), *_system_options()]
    for number, (source, target) in enumerate(mounts):
        options += ["--ro-bind", f"{STAGE}/{number}" if user else str(source), target]
    options += ["--dir", "/empty", "--remount-ro", "/", "--chdir", "/empty"]
    filter_ = seccomp.filter_for()
    launch = {
        "runtime": str(Path(seccomp.__file__).parent),
        "stage": staged,
        "user": user,
        "bubblewrap": bubblewrap,
        "options": options,
        "filter": filter_.hex() if filter_ else "",
        "argv": [str(_python()), "-I", "-S", f"{_PROGRAM}/program.py", "answer"],
    }
    paths = [[name for _, name in paths] for paths in names]
    packages = [target for _, target in _package_mounts()]
    words = [str(_python()), "-I", "-S", program.__file__, "launch", json.dumps(launch)]
    process = await _start(words, ())
    await _send_order(process, _message(order, paths, packages, deadline=deadline, user=None))
    yield process


@asynccontextmanager
async def _with_descriptors(
    order: ChildOrder, *, deadline: float, user: int
) -> AsyncIterator[Process]:
    descriptors = await asyncio.to_thread(open_files, order, copied=not user)
    try:
        numbers = [fd for fds in descriptors for fd in fds]
        words = [str(_python()), "-I", "-S", program.__file__, "answer"]
        process = await _start(words, numbers)
    finally:
        for fds in descriptors:
            for fd in fds:
                os.close(fd)
    paths = [[f"/proc/self/fd/{fd}" for fd in fds] for fds in descriptors]
    packages = [str(source) for source, _ in _package_mounts()]
    await _send_order(process, _message(order, paths, packages, deadline=deadline, user=user))
    yield process


def open_files(order: ChildOrder, *, copied: bool) -> list[list[int]]:
    opened = list[list[int]]()
    try:
        for view in order.views:
            opened.append([])
            for path in view.paths:
                opened[-1].append(_open_copy(path) if copied else os.open(path, os.O_RDONLY))
    except OSError:
        for fds in opened:
            for fd in fds:
                os.close(fd)
        raise
    return opened


def _open_copy(path: Path) -> int:
    """Open a copy that shares its bytes where the file system can, and that has no name."""
    with tempfile.TemporaryDirectory(prefix="new-", dir=path.parent) as folder:
        copy = Path(folder, "copy")
        copy_file(path, copy, mode=0o400)
        return os.open(copy, os.O_RDONLY)


async def _start(words: Sequence[str], descriptors: Sequence[int]) -> Process:
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE if len(descriptors) == 0 else DEVNULL,
        env={},
        cwd="/",
        pass_fds=tuple(descriptors),
        start_new_session=True,
    )


async def _send_order(process: Process, message: dict[str, Any]) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(ConnectionError):
        process.stdin.write(json.dumps(message).encode())
        await process.stdin.drain()
        process.stdin.close()


def _message(
    order: ChildOrder,
    paths: Sequence[Sequence[str]],
    packages: Sequence[str],
    *,
    deadline: float,
    user: int | None,
) -> dict[str, Any]:
    return {
        "task": order.task,
        "sql": order.sql,
        "format": order.format,
        "rows": order.rows,
        "bytes": order.bytes,
        "memory": order.memory,
        "deadline": deadline,
        "packages": list(packages),
        # Of a child that has no sandbox around it.
        "user": user,
        "views": [
            {"name": view.name, "format": view.format, "paths": list(names)}
            for view, names in zip(order.views, paths, strict=True)
        ],
    }


def _data_names(order: ChildOrder) -> list[list[tuple[Path, str]]]:
    """Return for each file of each view the neutral name under which the child sees it."""
    return [
        [(path, f"/data/{number}-{place}.{view.format}") for place, path in enumerate(view.paths)]
        for number, view in enumerate(order.views)
    ]


def _namespace_options() -> list[str]:
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]
    # No session of its own: it has no terminal, and its group is what `Child.kill` ends.
    words += ["--unshare-cgroup-try", "--disable-userns", "--die-with-parent"]
    words += ["--cap-drop", "ALL", "--hostname", "query", "--clearenv"]
    return [*words, "--uid", str(_INNER_USER), "--gid", str(_INNER_USER)]


@lru_cache(maxsize=1)
def _system_options() -> tuple[str, ...]:
    """Mount the libraries of the system, and nothing else of it."""
    words = list[str]()
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    return (*words, "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")


@lru_cache(maxsize=1)
def _python() -> Path:
    return Path(sys.executable).resolve()


@lru_cache(maxsize=1)
def python_mounts() -> tuple[tuple[Path, str], ...]:
    prefix = Path(sys.base_prefix).resolve()
    own = () if prefix.is_relative_to("/usr") else ((prefix, str(prefix)),)
    files = [Path(each).resolve() for each in (program.__file__, statistics_program.__file__)]
    return (*own, *_package_mounts(), *((file, f"{_PROGRAM}/{file.name}") for file in files))


@lru_cache(maxsize=1)
def _package_mounts() -> tuple[tuple[Path, str], ...]:
    """Return the folders of installed packages that the program imports from."""
    folders = dict[Path, None]()
    for name in _MODULES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            folders[Path(spec.origin).resolve().parents[1]] = None
    return tuple((folder, f"/packages/{number}") for number, folder in enumerate(folders))
