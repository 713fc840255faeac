"""Program of an attachment: becomes a process of the job, and runs a session there.

The session leader starts what was requested, reaps it, and kills everything of it at the end.
"""

import array
import errno
import fcntl
import marshal
import os
import select
import signal
import socket
import sys
import termios
from typing import Any, NoReturn

# As a program it knows no other name for the shim.
from ..shim.system import call, descendants, kill, read  # noqa: TID252
from .nsenter import give_up_rights, join
from .sftp_server import serve
from .terminals import open_terminal, set_modes

# First word of the message to the hub.
STARTED, FAILED = b"started", b"failed "
_SUBREAPER = 36
_KILL_ROUNDS, _ROUND_MILLIS = 400, 5
_MESSAGE_BYTES = 64


def main() -> None:
    """Read the order from a memory file; three more descriptors are stdin, stdout and stderr."""
    control = socket.socket(fileno=0)
    order_fd, *streams = [_move_to_lowest(int(word)) for word in sys.argv[2:]]
    order: dict[str, Any] = marshal.loads(read(f"/proc/self/fd/{order_fd}"))  # noqa: S302 - from the hub.
    os.close(order_fd)
    try:
        job = join(order)
        child = os.fork()
        if child == 0:
            _run_session(control, order, job=job, streams=streams)
    except Exception as error:  # noqa: BLE001 - whatever it is, the hub waits for a message.
        _send_failure(control, error)
        os._exit(1)
    os._exit(0)


def _move_to_lowest(fd: int) -> int:
    """Move a descriptor to the lowest free number: the session closes only those below 256."""
    low = os.dup(fd)
    os.close(fd)
    return low


def _send_failure(control: socket.socket, error: Exception) -> None:
    """Send the hub the reason, if it still listens."""
    try:
        control.send(FAILED + (getattr(error, "strerror", None) or str(error)).encode()[:500])
    except OSError:
        return


def _run_session(
    control: socket.socket, order: dict[str, Any], *, job: int, streams: list[int]
) -> NoReturn:
    """Run what was requested until it ends, the hub disconnects, or the job ends."""
    os.setsid()
    call("prctl", _SUBREAPER, 1, 0, 0, 0)
    if order["sandboxed"]:
        give_up_rights(order)
    wake_fd, signal_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(signal_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    main = _start(control, order, streams)
    status = _supervise(control, main, wake_fd=wake_fd, job=job)
    _kill_all()
    try:
        control.send(status)
    except OSError:
        os._exit(1)
    os._exit(0)


def _start(control: socket.socket, order: dict[str, Any], streams: list[int]) -> int:
    ends = open_terminal(order["size"]) if order["terminal"] else None
    if ends:
        set_modes(ends[1], order["modes"])
        streams = [ends[1]] * 3
    failed, failure = os.pipe2(os.O_CLOEXEC)
    main = os.fork()
    if main == 0:
        _exec(order, streams, failure)
    for fd in {failure, *streams}:
        os.close(fd)
    if reason := os.read(failed, 500):
        raise OSError(errno.ENOEXEC, reason.decode())
    rights = array.array("i", ends[:1] if ends else [])
    control.sendmsg([STARTED], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if ends else [])
    if ends:
        os.close(ends[0])
    return main


def _exec(order: dict[str, Any], streams: list[int], failure: int) -> NoReturn:
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if order["terminal"]:
            fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
            order["environment"]["SSH_TTY"] = os.ttyname(streams[0])
        # Above 3, so that no dup2 below overwrites a descriptor that is still needed.
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (*streams, failure)]
        for place in range(3):
            os.dup2(moved[place], place)
        os.dup2(moved[3], 3, inheritable=False)
        os.closerange(4, 256)
        _go_home(order["environment"].get("HOME", "/"))
        if order["sftp"]:
            os.close(3)
            serve(0, 1, target_first=order["target_first"])
            os._exit(0)
        argv = order["argv"] or [_shell()]
        os.execvpe(argv[0], argv, order["environment"])  # noqa: S606 - what its owner requested.
    except (OSError, ValueError) as error:
        os.write(3, (getattr(error, "strerror", None) or str(error)).encode()[:400])
    os._exit(127)


def _go_home(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")


def _shell() -> str:
    # Not a login shell: that would reset PATH, and lose the programs of the image.
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def _supervise(control: socket.socket, main: int, *, wake_fd: int, job: int) -> bytes:
    """Return how it ended; it counts as killed if the job ended or the hub disconnected."""
    poll = select.poll()
    for fd in (wake_fd, job, control.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == wake_fd:
                os.read(wake_fd, 4096)
                if (status := _reap(main)) is not None:
                    return status
            elif fd == job or not _forward_signal(control, main):
                return b"signal 9"


def _forward_signal(control: socket.socket, main: int) -> bool:
    """Forward a signal from the hub; False when the hub has disconnected."""
    try:
        word = control.recv(_MESSAGE_BYTES)
    except OSError:
        return False
    if word:
        try:
            os.killpg(main, int(word))
        except OSError:
            return True
    return bool(word)


def _reap(main: int) -> bytes | None:
    status: bytes | None = None
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == main:
                code = os.waitstatus_to_exitcode(found[1])
                status = b"signal %d" % -code if code < 0 else b"exit %d" % code
    except ChildProcessError:
        return status
    return status


def _kill_all() -> None:
    nothing = select.poll()
    for _ in range(_KILL_ROUNDS):
        if not (left := descendants(os.getpid())):
            return
        for pid in left:
            kill(pid)
        nothing.poll(_ROUND_MILLIS)
        _reap(0)
