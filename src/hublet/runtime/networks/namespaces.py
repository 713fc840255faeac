"""Network namespaces, and the programs ip and nft, which work in the namespace of their thread."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hublet.runtime.errors import NetworkFailed
from hublet.runtime.shim.system import call

CLONE_NEWNET = 0x40000000
_SEARCH_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_PACKAGES = {"ip": "iproute2", "nft": "nftables"}
_TIMEOUT_SECONDS = 20

_T = TypeVar("_T")


def find_program(program: str) -> str:
    if (path := shutil.which(program, path=_SEARCH_PATH)) is None:
        raise NetworkFailed(f"it needs {program}; install the package {_PACKAGES[program]}")
    return path


def ip(lines: Sequence[str]) -> None:
    """Run commands of ip one after the other, in the namespace of this thread."""
    _run([find_program("ip"), "-batch", "-"], "\n".join(lines) + "\n")


def nft(text: str) -> None:
    """Change the rules of the namespace of this thread: all of the text, or nothing."""
    _run([find_program("nft"), "-f", "-"], text)


def _run(argv: list[str], text: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program; the words are ours.
            argv,
            check=False,
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NetworkFailed(f"{argv[0]} could not be run: {error}") from error
    if done.returncode:
        raise NetworkFailed(" ".join(done.stderr.split()) or f"{argv[0]} failed")


def run_in_thread(work: Callable[[], _T]) -> _T:
    """Run work in a thread of its own: a thread that joined a namespace is not used again."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(work).result()


def create_namespace() -> int:
    """Put this thread into a new namespace; return a descriptor, which keeps the namespace alive."""
    call("unshare", CLONE_NEWNET)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(descriptor: int) -> None:
    call("setns", descriptor, CLONE_NEWNET)


def path_of(descriptor: int) -> str:
    """Return the path by which other processes open a descriptor of this process."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def hub_namespace() -> str:
    return f"/proc/{os.getpid()}/ns/net"
