"""Session leader inside the job: starts what was requested, reaps it, and leaves nothing of it."""

import array
import errno
import fcntl
import os
import select
import signal
import socket
import termios
from typing import Any, NoReturn

from ..shim.system import call, descendants, kill  # noqa: TID252 - see program.py.
from .nsenter import give_up_rights
from .sftp.server import serve
from .terminals import open_terminal, set_modes

_SUBREAPER = 36
_PATIENCE_ROUNDS, _ROUND_MILLIS = 400, 5
_MESSAGE_BYTES = 64
STARTED = b"started"


def keep(
    control: socket.socket, order: dict[str, Any], *, job: int, streams: list[int]
) -> NoReturn:
    """Run what was asked for until it ends, nobody wants it any more, or the job ends."""
    os.setsid()
    call("prctl", _SUBREAPER, 1, 0, 0, 0)
    if order["sandboxed"]:
        give_up_rights(order)
    bell, ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    main = _begin(control, order, streams)
    status = _attend(control, main, bell=bell, job=job)
    _end_all()
    try:
        control.send(status)
    except OSError:
        os._exit(1)
    os._exit(0)


def _begin(control: socket.socket, order: dict[str, Any], streams: list[int]) -> int:
    ends = open_terminal(order["size"]) if order["terminal"] else None
    if ends:
        set_modes(ends[1], order["modes"])
        streams = [ends[1]] * 3
    failed, failure = os.pipe2(os.O_CLOEXEC)
    main = os.fork()
    if main == 0:
        _become(order, streams, failure)
    for fd in {failure, *streams}:
        os.close(fd)
    if reason := os.read(failed, 500):
        raise OSError(errno.ENOEXEC, reason.decode())
    rights = array.array("i", ends[:1] if ends else [])
    control.sendmsg([STARTED], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if ends else [])
    if ends:
        os.close(ends[0])
    return main


def _become(order: dict[str, Any], streams: list[int], failure: int) -> NoReturn:
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if order["terminal"]:
            fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
            order["environment"]["SSH_TTY"] = os.ttyname(streams[0])
        # Above the three that follow, so that none takes the place of another.
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
        os.execvpe(argv[0], argv, order["environment"])  # noqa: S606 - what its owner asked for.
    except (OSError, ValueError) as error:
        os.write(3, (getattr(error, "strerror", None) or str(error)).encode()[:400])
    os._exit(127)


def _go_home(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")


def _shell() -> str:
    # Not as a login shell: that would set PATH anew, and the image's own programs were lost.
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def _attend(control: socket.socket, main: int, *, bell: int, job: int) -> bytes:
    """Return how it ended, once it has; what was wanted no more was killed."""
    poll = select.poll()
    for fd in (bell, job, control.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == bell:
                os.read(bell, 4096)
                if (status := _reap(main)) is not None:
                    return status
            elif fd == job or not _obey(control, main):
                return b"signal 9"


def _obey(control: socket.socket, main: int) -> bool:
    """Pass a signal on; False when nobody is there any more."""
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


def _end_all() -> None:
    nothing = select.poll()
    for _ in range(_PATIENCE_ROUNDS):
        if not (left := descendants(os.getpid())):
            return
        for pid in left:
            kill(pid)
        nothing.poll(_ROUND_MILLIS)
        _reap(0)
