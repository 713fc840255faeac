"""Network namespaces: which one a thread is in decides what it, and what it starts, can see."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hublet.jobs.runners.shim.system import call

NETWORK = 0x40000000

_T = TypeVar("_T")


def apart(work: Callable[[], _T]) -> _T:
    """Run something in a thread that ends with it, and so is in no other's way."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(work).result()


def made() -> int:
    """Put this thread into a new namespace; it is there as long as the descriptor returned."""
    call("unshare", NETWORK)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(descriptor: int) -> None:
    call("setns", descriptor, NETWORK)


def path_of(descriptor: int) -> str:
    """Return where others find what a descriptor of this process stands for."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def of_the_hub() -> str:
    return f"/proc/{os.getpid()}/ns/net"
