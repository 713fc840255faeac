"""Attachment to an attempt, the hub's side: starts a process in the job, holds its streams."""

import asyncio
import marshal
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.runtime import seccomp
from hublet.runtime.attach.program import FAILED, STARTED
from hublet.runtime.attach.terminals import resize
from hublet.runtime.errors import CannotAttach
from hublet.runtime.records import Attachment, AttachPoint, AttachRequest, TerminalSize
from hublet.runtime.shim.system import read

# The folder of `runtime` comes last in sys.path, so that no module of ours hides one of Python.
_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv[1]); from runtime.attach.program import main; main()"
)
_COMMAND = (sys.executable, "-I", "-S", "-c", _BOOTSTRAP, str(Path(__file__).parents[2]))
_RESPONSE_SECONDS = 15.0
_MESSAGE_BYTES = 1024
_VARIABLE_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")

# For engines, whose exec is all there is: they cannot kill it, and processes may daemonize, so this
# variable marks all of them.
SESSION_VARIABLE = "HUBLET_SESSION"
_SHELL_SCRIPT = "[ -x /bin/bash ] && exec /bin/bash; exec /bin/sh"
# The hub cannot bring an SFTP server along: the image may have one.
_SFTP_SCRIPT = (
    "for p in /usr/lib/openssh /usr/lib/ssh /usr/libexec/openssh /usr/libexec; do "
    "[ -x $p/sftp-server ] && exec $p/sftp-server; done; "
    "echo 'The image of the job has no sftp-server.' >&2; exit 127"
)
# Takes the mark of a session and the number of a signal.
KILL_SCRIPT = (
    'for p in /proc/[0-9]*; do grep -qa "$0" "$p/environ" 2>/dev/null && '
    'kill -"$1" "${p#/proc/}"; done; true'
)


def engine_argv(request: AttachRequest) -> list[str]:
    """Return what an engine executes in a job for this request."""
    if request.sftp:
        return ["/bin/sh", "-c", _SFTP_SCRIPT]
    return list(request.argv) or ["/bin/sh", "-c", _SHELL_SCRIPT]


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return two ends that wait for nobody."""
    pair = socket.socketpair()
    for each in pair:
        each.setblocking(False)
    return pair


@dataclass(slots=True, kw_only=True)
class _ProcessAttachment:
    """Through the attach program; with a terminal stdin and stdout are the same descriptor."""

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
            message = await loop.sock_recv(self.control, _MESSAGE_BYTES)
        except OSError:
            message = b""
        kind, _, number = message.partition(b" ")
        # A session leader that sends no message was killed.
        return int(number) if kind == b"exit" else -int(number or signal.SIGKILL)

    def end_input(self) -> None:
        os.close(self.stdin)
        self.stdin = -1

    def close(self) -> None:
        self.control.close()
        fds = {self.stdin, self.stdout, -1 if self.stderr is None else self.stderr}
        _close([fd for fd in fds if fd >= 0])

    async def wait_closed(self) -> None:
        # The session leader cleans up by itself.
        return


async def attach(
    attach_point: AttachPoint, request: AttachRequest, *, is_plain: bool
) -> Attachment:
    """Start a process in a job; `is_plain`: the job has no namespaces. Raises CannotAttach."""
    return await asyncio.to_thread(_attach, attach_point, request, is_plain=is_plain)


def _attach(attach_point: AttachPoint, request: AttachRequest, *, is_plain: bool) -> Attachment:
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read_in, write_in = os.pipe2(os.O_CLOEXEC)
    read_out, write_out = os.pipe2(os.O_CLOEXEC)
    read_error, write_error = os.pipe2(os.O_CLOEXEC)
    ours, order = (
        [write_in, read_out, read_error],
        _order_file(attach_point, request, is_plain=is_plain),
    )
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


def _order_file(attach_point: AttachPoint, request: AttachRequest, *, is_plain: bool) -> int:
    """Return a memory file: neither arguments nor a disk are a place for secrets."""
    terminal = request.terminal
    order = {
        "pid": attach_point.process.pid,
        "start": attach_point.process.start,
        "groups": list(attach_point.groups),
        "host_user": attach_point.user,
        "sandboxed": not is_plain,
        "filter": None if is_plain else seccomp.filter_for(),
        "argv": list(request.argv),
        "sftp": request.sftp,
        "target_first": request.target_first,
        "environment": dict(request.environment),
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
        # If the program died, this makes the read of its message end.
        control.close()
        _close(fds)


def _await_start(control: socket.socket) -> int | None:
    """Return the hub's end of the terminal; None when there is none."""
    control.settimeout(_RESPONSE_SECONDS)
    try:
        message, fds, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 1)
    except OSError as error:
        raise CannotAttach("The job cannot be entered right now.") from error
    if message != STARTED:
        why = message.removeprefix(FAILED).decode(errors="replace") or "it has ended"
        raise CannotAttach(f"The job cannot be entered: {why}.")
    return fds[0] if fds else None


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def initial_environment(attach_point: AttachPoint, *, is_plain: bool) -> dict[str, str]:
    """Return the environment that the job's first process started with.

    A program can overwrite it in its memory, so nothing may rely on it. Blocks.
    """
    pid = attach_point.process.pid
    if not is_plain:
        # The first process of a sandbox is its init; the job is the child.
        children = read(f"/proc/{pid}/task/{pid}/children").split()
        pid = int(children[0]) if children else 0
    pairs = [line.partition(b"=") for line in read(f"/proc/{pid}/environ").split(b"\0")]
    found = {
        name: value for name, is_pair, value in pairs if is_pair and _VARIABLE_NAME.fullmatch(name)
    }
    # The process may have ended, and its pid been reused.
    if not attach_point.process.lives():
        return {}
    return {name.decode(): value.decode(errors="surrogateescape") for name, value in found.items()}
