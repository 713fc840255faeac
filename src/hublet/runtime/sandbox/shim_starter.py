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

# Its folder is only looked into for `shim`, and after everything of Python's own.
_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from shim.program import main; main()"
_COMMAND = (sys.executable, "-I", "-S", "-c", _BOOTSTRAP, str(Path(__file__).parents[1]))
_RESPONSE_MILLIS = 30_000
_POOL_SIZE = 2


@dataclass(slots=True)
class ShimStarter:
    """Started when it is first needed, and again when it was killed. For one thread at a time."""

    # Where orders are written and answers are read.
    _pipes: tuple[int, int] | None = None

    def start(self, spec: dict[str, Any]) -> None:
        body = marshal.dumps(spec)
        order = len(body).to_bytes(HEAD, "big") + body
        # The one who waits may have been killed since the last order; a new one has not.
        answer = self._ask(order) or self._ask(order)
        if not answer or answer == FAILED:
            raise CannotRunYet("The attempt could not be started: its shim ended at once.")

    def warm_up(self) -> None:
        self._pipes = self._pipes or _open()

    def _ask(self, order: bytes) -> bytes:
        try:
            self._pipes = self._pipes or _open()
            view = memoryview(order)
            while view:
                view = view[os.write(self._pipes[0], view) :]
            if answer := _read(self._pipes[1]):
                return answer
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
    """As many as shims can be started beside each other; the later ones only when it comes to that."""

    _idle: LifoQueue[ShimStarter] = field(default_factory=LifoQueue)

    def __post_init__(self) -> None:
        for _ in range(_POOL_SIZE):
            self._idle.put(ShimStarter())

    def start(self, spec: dict[str, Any]) -> None:
        """Hand an attempt to a shim; returns when it was taken over. Blocks. Raises CannotRunYet."""
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
    orders, order = os.pipe2(os.O_CLOEXEC)
    answers, answer = os.pipe2(os.O_CLOEXEC)
    try:
        # It goes on in a process of its own: this one ends at once.
        subprocess.run(  # noqa: S603 - this very interpreter, with a program of ours.
            _COMMAND, stdin=orders, stdout=answer, stderr=subprocess.DEVNULL, env={}, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        os.close(order)
        os.close(answers)
        raise CannotRunYet(f"The attempt could not be started: {error}.") from error
    finally:
        os.close(orders)
        os.close(answer)
    return order, answers


def _read(fd: int) -> bytes:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return os.read(fd, 1) if poll.poll(_RESPONSE_MILLIS) else b""
