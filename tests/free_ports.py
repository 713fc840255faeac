"""Ports for programs that are told theirs before they listen."""

import fcntl
import os
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

# Below those that the system gives to whoever takes any.
_FIRST, _COUNT = 20_000, 12_000


def free_port() -> int:
    """Return a port that nobody listens on, and that no test on this machine is given soon again."""
    with (Path(tempfile.gettempdir()) / f"hublet-ports-{os.getuid()}").open("a+") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        last.seek(0)
        port = _next_free(int(last.read() or _FIRST))
        last.truncate(0)
        last.write(str(port))
    return port


def _next_free(port: int) -> int:
    for _ in range(_COUNT):
        port = _FIRST + (port + 1 - _FIRST) % _COUNT
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("No port is free.")
