"""Unpacker: processes beside the hub that unpack layers, so that the hub itself stays quick."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, cast

from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.images.layer_archive import UNREADABLE
from hublet.runtime.images.layers import LayerNotes, UnpackBudget, unpack
from hublet.runtime.images.oci import DamagedImage
from hublet.runtime.shim.system import call

_PROGRAM = "from hublet.runtime.images.unpacker import main; main()"
_MAX_PROCESSES = 4
# A layer below this size is unpacked sooner than a process is started.
_SMALL = 2**20
_PDEATHSIG = 1
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskFull(CannotRun):
    def __init__(self) -> None:
        super().__init__(
            "The disk of the hub's machine has no room for the image. Use a smaller image, or ask an "
            "administrator to make room."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpackOrder:
    """A layer in a file, and the empty folder that it goes to."""

    archive: Path
    digest: str
    folder: Path


def unpack_layer(order: UnpackOrder) -> LayerNotes:
    """Verify a layer and unpack it. Blocks. Raises CannotRun."""
    # A layout that came in an archive may hold links to anywhere.
    fd = os.open(order.archive, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        algorithm, _, expected = order.digest.partition(":")
        if hashlib.file_digest(file, algorithm).hexdigest() != expected:
            raise DamagedImage(order.digest)
        file.seek(0)
        return unpack(file, into=order.folder, budget=UnpackBudget())


def explain(error: BaseException) -> CannotRun:
    """Return the sentence for an error of unpacking."""
    if isinstance(error, CannotRun):
        return error
    if isinstance(error, OSError) and error.errno in _FULL:
        return DiskFull()
    return CannotRun(f"The image cannot be read: {error}.")


@dataclass(slots=True)
class UnpackerPool:
    """Processes that unpack layers at the same time, each started when it is first needed."""

    _idle: SimpleQueue["_UnpackProcess"] = field(default_factory=SimpleQueue)

    def run(self, works: Sequence[Callable[["UnpackerPool"], LayerNotes]]) -> list[LayerNotes]:
        """Do work that needs the pool, some of it at the same time; raise its first error."""
        count = min(len(works), os.cpu_count() or 1, _MAX_PROCESSES)
        try:
            with ThreadPoolExecutor(max(count, 1), thread_name_prefix="unpack") as threads:
                doing = [threads.submit(work, self) for work in works]
                try:
                    return [each.result() for each in doing]
                finally:
                    for each in doing:
                        each.cancel()
        finally:
            while not self._idle.empty():
                self._idle.get().close()

    def unpack(self, order: UnpackOrder) -> LayerNotes:
        """Unpack a layer. Blocks. Raises CannotRun."""
        try:
            if order.archive.stat().st_size < _SMALL:
                return unpack_layer(order)
            process = _UnpackProcess() if self._idle.empty() else self._idle.get()
            try:
                return process.unpack(order)
            finally:
                if process.lives():
                    self._idle.put(process)
                else:
                    process.close()
        except UNREADABLE as error:
            raise explain(error) from error


class _UnpackProcess:
    def __init__(self) -> None:
        # The same modules as here, wherever they come from.
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603 - this very interpreter, with a program of ours.
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": path},
        )
        self._pipes = self._process.stdin, self._process.stdout

    def unpack(self, order: UnpackOrder) -> LayerNotes:
        words = [str(order.archive), order.digest, str(order.folder)]
        orders, responses = cast("tuple[IO[bytes], IO[bytes]]", self._pipes)
        orders.write(json.dumps(words).encode() + b"\n")
        orders.flush()
        response: dict[str, Any] = json.loads(responses.readline() or b"{}")
        if "refusal" in response:
            raise CannotRun(response["refusal"])
        if "notes" not in response:
            self._process.kill()
            self._process.wait()
            raise CannotRunYet("The image could not be unpacked: its process was killed.")
        return LayerNotes.from_json(response["notes"])

    def lives(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Unpack layers as the hub orders, one line each, until it ends."""
    call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for line in sys.stdin:
        archive, digest, folder = json.loads(line)
        order = UnpackOrder(archive=Path(archive), digest=digest, folder=Path(folder))
        try:
            response = {"notes": unpack_layer(order).to_json()}
        except (CannotRun, *UNREADABLE) as error:
            response = {"refusal": str(explain(error))}
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()
