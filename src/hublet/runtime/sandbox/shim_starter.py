"""Fork server for shims: one process of the hub waits for orders and forks a shim for each."""

import marshal
import os
import select
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from queue import LifoQueue
from typing import Any

from hublet.runtime.errors import CannotRunYet
from hublet.runtime.shim.program import FAILED, HEAD

# The folder of `shim` comes last in sys.path, so that no module of ours hides one of Python.
_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from shim.program import main; main()"
_COMMAND = (sys.executable, "-I", "-S", "-c", _BOOTSTRAP, str(Path(__file__).parents[1]))
_RESPONSE_MILLIS = 30_000
_POOL_SIZE = 2


@dataclass(slots=True)
class ShimStarter:
    """One fork server: started when first needed, and again if killed. For one thread at a time."""

    # To write orders to, and to read responses from.
    _pipes: tuple[int, int] | None = None

    def start(self, spec: dict[str, Any]) -> None:
        body = marshal.dumps(spec)
        order = len(body).to_bytes(HEAD, "big") + body
        # The fork server may have been killed since the last order: then a new one is started.
        response = self._exchange(order) or self._exchange(order)
        if not response or response == FAILED:
            raise CannotRunYet("The attempt could not be started: its shim ended at once.")

    def warm_up(self) -> None:
        self._pipes = self._pipes or _open()

    def _exchange(self, order: bytes) -> bytes:
        try:
            self._pipes = self._pipes or _open()
            view = memoryview(order)
            while view:
                view = view[os.write(self._pipes[0], view) :]
            if response := _read(self._pipes[1]):
                return response
        except OSError:
            self.close()
            return b""
        self.close()
        return b""

    def close(self) -> None:
        for fd in self._pipes or ():
            os.close(fd)
        self._pipes = None

    def __del__(self) -> None:
        self.close()


@dataclass(slots=True)
class ShimStarterPool:
    """Fork servers for parallel launches; the last one used is taken first, so few are ever started."""

    _idle: LifoQueue[ShimStarter] = field(default_factory=LifoQueue)

    def __post_init__(self) -> None:
        for _ in range(_POOL_SIZE):
            self._idle.put(ShimStarter())

    def start(self, spec: dict[str, Any]) -> None:
        """Start a shim; return when it has the attempt. Blocks. Raises CannotRunYet."""
        starter = self._idle.get()
        try:
            starter.start(spec)
        finally:
            self._idle.put(starter)

    def warm_up(self) -> None:
        starter = self._idle.get()
        try:
            starter.warm_up()
        finally:
            self._idle.put(starter)


def _open() -> tuple[int, int]:
    order_reader, order_writer = os.pipe2(os.O_CLOEXEC)
    response_reader, response_writer = os.pipe2(os.O_CLOEXEC)
    try:
        # The program daemonizes, so this returns at once.
        subprocess.run(  # noqa: S603 - this very interpreter, with a program of ours.
            _COMMAND,
            stdin=order_reader,
            stdout=response_writer,
            stderr=subprocess.DEVNULL,
            env={},
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        os.close(order_writer)
        os.close(response_reader)
        raise CannotRunYet(f"The attempt could not be started: {error}.") from error
    finally:
        os.close(order_reader)
        os.close(response_writer)
    return order_writer, response_reader


def _read(fd: int) -> bytes:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return os.read(fd, 1) if poll.poll(_RESPONSE_MILLIS) else b""
