"""Attachment to an attempt, the hub's side: starts a process in the job, holds its streams."""

import asyncio
import marshal
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Protocol

from hublet.core.light_dataclasses import dataclass
from hublet.runtime import seccomp
from hublet.runtime.attach.program import FAILED
from hublet.runtime.attach.session import STARTED
from hublet.runtime.attach.terminals import resize
from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import AttachPoint
from hublet.runtime.shim.system import read

# Its folder is only looked into for `runtime`, and after everything of Python's own.
_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv[1]); from runtime.attach.program import main; main()"
)
_COMMAND = (sys.executable, "-I", "-S", "-c", _BOOTSTRAP, str(Path(__file__).parents[2]))
_RESPONSE_SECONDS = 15.0
_MESSAGE_BYTES = 1024

TerminalSize = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    # Columns and rows, then the same in pixels.
    size: TerminalSize
    # As RFC 4254 numbers them.
    modes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRequest:
    """What is to run inside: a program, or without one a shell; or a server of files."""

    argv: Sequence[str] = ()
    sftp: bool = False
    # How the client names links: some have the target before the name, against the draft.
    target_first: bool = False
    environment: Mapping[str, str] = field(repr=False)
    terminal: Terminal | None = None


class Attachment(Protocol):
    """Something that runs inside; everything of it ends when this is closed."""

    # Descriptors that do not block. With a terminal there is no third.
    stdin: int
    stdout: int
    stderr: int | None

    def send(self, number: signal.Signals) -> None: ...

    def resize(self, size: TerminalSize) -> None: ...

    def end_input(self) -> None:
        """Let the reader inside come to an end; without a terminal only."""
        ...

    async def ended(self) -> int:
        """Return the exit status, below zero for a signal; nothing of it is left by then."""
        ...

    def close(self) -> None: ...

    async def wait_closed(self) -> None:
        """Wait until nothing is left to be done for it."""
        ...


@dataclass(slots=True, kw_only=True)
class _ProcessAttachment:
    """Through a keeper inside; with a terminal the first two descriptors are the same."""

    control: socket.socket
    stdin: int
    stdout: int
    stderr: int | None

    def send(self, number: signal.Signals) -> None:
        with suppress(OSError):
            self.control.send(b"%d" % number)

    def resize(self, size: TerminalSize) -> None:
        with suppress(OSError):
            resize(self.stdin, size)

    async def ended(self) -> int:
        loop = asyncio.get_running_loop()
        try:
            said = await loop.sock_recv(self.control, _MESSAGE_BYTES)
        except OSError:
            said = b""
        kind, _, number = said.partition(b" ")
        # Who ends without a word was killed.
        return int(number) if kind == b"exit" else -int(number or signal.SIGKILL)

    def end_input(self) -> None:
        os.close(self.stdin)
        self.stdin = -1

    def close(self) -> None:
        self.control.close()
        fds = {self.stdin, self.stdout, -1 if self.stderr is None else self.stderr}
        _close([fd for fd in fds if fd >= 0])

    async def wait_closed(self) -> None:
        # The keeper does it by itself.
        return


async def attach(inside: AttachPoint, wish: AttachRequest, *, is_plain: bool) -> Attachment:
    """Begin something inside; `is_plain` where an attempt has no namespaces. Raises CannotAttach."""
    return await asyncio.to_thread(_attach, inside, wish, is_plain=is_plain)


def _attach(inside: AttachPoint, wish: AttachRequest, *, is_plain: bool) -> Attachment:
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read_in, write_in = os.pipe2(os.O_CLOEXEC)
    read_out, write_out = os.pipe2(os.O_CLOEXEC)
    read_error, write_error = os.pipe2(os.O_CLOEXEC)
    ours, order = [write_in, read_out, read_error], _order_file(inside, wish, is_plain=is_plain)
    try:
        _start(theirs, [order, read_in, write_out, write_error])
        master = _await_start(control)
    except CannotAttach:
        control.close()
        _close(ours)
        raise
    if master is not None:
        _close(ours)
        ours = [master]
    for fd in ours:
        os.set_blocking(fd, False)
    control.setblocking(False)
    if master is not None:
        return _ProcessAttachment(control=control, stdin=master, stdout=master, stderr=None)
    return _ProcessAttachment(control=control, stdin=ours[0], stdout=ours[1], stderr=ours[2])


def _order_file(inside: AttachPoint, wish: AttachRequest, *, is_plain: bool) -> int:
    """Return a file in memory: neither the arguments nor a disk are a place for secrets."""
    terminal = wish.terminal
    order = {
        "pid": inside.process.pid,
        "start": inside.process.start,
        "groups": list(inside.groups),
        "host_user": inside.user,
        "sandboxed": not is_plain,
        "filter": None if is_plain else seccomp.filter_for(),
        "argv": list(wish.argv),
        "sftp": wish.sftp,
        "target_first": wish.target_first,
        "environment": dict(wish.environment),
        "terminal": terminal is not None,
        "size": terminal.size if terminal else (0, 0, 0, 0),
        "modes": dict(terminal.modes) if terminal else {},
    }
    fd = os.memfd_create("hublet", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(marshal.dumps(order))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _start(control: socket.socket, fds: list[int]) -> None:
    numbers = [str(fd) for fd in fds]
    try:
        subprocess.run(  # noqa: S603 - this very interpreter, with a program of ours.
            [*_COMMAND, *numbers],
            stdin=control.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            pass_fds=fds,
            check=False,
            timeout=_RESPONSE_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotAttach("The job cannot be entered right now.") from error
    finally:
        # Whoever waits for a word hears of the end as well.
        control.close()
        _close(fds)


def _await_start(control: socket.socket) -> int | None:
    """Return the hub's end of the terminal; None when there is none."""
    control.settimeout(_RESPONSE_SECONDS)
    try:
        said, fds, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 1)
    except OSError as error:
        raise CannotAttach("The job cannot be entered right now.") from error
    if said != STARTED:
        why = said.removeprefix(FAILED).decode(errors="replace") or "it has ended"
        raise CannotAttach(f"The job cannot be entered: {why}.")
    return fds[0] if fds else None


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


_VARIABLE_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


def initial_environment(inside: AttachPoint, *, is_plain: bool) -> dict[str, str]:
    """Return what the job's first process began with: its image and its runner have a say in it.

    A program may have written over that, so nothing here is to be relied on. Blocks.
    """
    pid = inside.process.pid
    if not is_plain:
        # The first process of a sandbox only makes the place; the job is its child.
        children = read(f"/proc/{pid}/task/{pid}/children").split()
        pid = int(children[0]) if children else 0
    pairs = [line.partition(b"=") for line in read(f"/proc/{pid}/environ").split(b"\0")]
    found = {
        name: value for name, is_pair, value in pairs if is_pair and _VARIABLE_NAME.fullmatch(name)
    }
    # The process may have ended, and its number be another's by now.
    if not inside.process.lives():
        return {}
    return {name.decode(): value.decode(errors="surrogateescape") for name, value in found.items()}
