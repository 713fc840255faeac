"""Main program of an attachment: enters the attempt and leaves a session leader there."""

import marshal
import os
import socket
import sys
from typing import Any

from ..shim.system import read  # noqa: TID252 - as a program it knows no other name for it.
from .nsenter import join
from .session import keep

FAILED = b"failed "


def main() -> None:
    """Take the order from a file in memory, and three descriptors for what is typed and printed."""
    control = socket.socket(fileno=0)
    letter, *streams = [_lowered(int(word)) for word in sys.argv[2:]]
    order: dict[str, Any] = marshal.loads(read(f"/proc/self/fd/{letter}"))  # noqa: S302 - of the hub.
    os.close(letter)
    try:
        job = join(order)
        child = os.fork()
        if child == 0:
            keep(control, order, job=job, streams=streams)
    except Exception as error:  # noqa: BLE001 - whatever it is, the hub waits for an answer.
        tell(control, error)
        os._exit(1)
    os._exit(0)


def _lowered(fd: int) -> int:
    """Move a descriptor to the lowest number: the hub's may be higher than what is closed later."""
    low = os.dup(fd)
    os.close(fd)
    return low


def tell(control: socket.socket, error: Exception) -> None:
    """Say why it did not work, if anybody still listens."""
    try:
        control.send(FAILED + (getattr(error, "strerror", None) or str(error)).encode()[:500])
    except OSError:
        return
