"""Main program of the shim: waits for orders, and forks a shim for each attempt.

The one who waits starts nothing itself: for each order it forks a shim, which therefore need not
load anything first and shares its memory with the others. It ends with the hub; the shims do not.
"""

import fcntl
import gc
import marshal
import os
import signal
from typing import Any

from .attempt import STATUS, Attempt

LOCK = "lock"
HEAD = 8
# What the hub reads after each order.
STARTED, TAKEN, FAILED = b"s", b"t", b"f"


def main() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A request to end that comes before a shim listens waits until then.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # What a shim touches is copied for it: nobody looks through everything for garbage.
    gc.disable()
    gc.freeze()
    while (spec := receive(0)) is not None:
        os.write(1, begin_shim(spec))


def begin_shim(spec: dict[str, Any]) -> bytes:
    """Fork a shim for an attempt; return what it answers, also when it is killed before it does."""
    answers, answer_fd = os.pipe2(os.O_CLOEXEC)
    if os.fork() == 0:
        os.dup2(answer_fd, 1)
        os.close(answer_fd)
        os.close(answers)
        take_over(spec)
        # Nor does it take everything apart before it ends.
        os._exit(0)
    os.close(answer_fd)
    word = os.read(answers, 1)
    os.close(answers)
    return word or FAILED


def receive(fd: int) -> dict[str, Any] | None:
    """Return the next order; None when the hub ended, be it in the middle of one."""
    if len(head := receive_bytes(fd, HEAD)) < HEAD:
        return None
    size = int.from_bytes(head, "big")
    if len(body := receive_bytes(fd, size)) < size:
        return None
    spec: dict[str, Any] = marshal.loads(body)  # noqa: S302 - from the hub, through its own pipe.
    return spec


def receive_bytes(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := os.read(fd, size - len(data))):
        data += chunk
    return data


def take_over(spec: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    attempt = Attempt(spec)
    try:
        begun = lock(spec["folder"]) and begin(attempt)
    except Exception:  # noqa: BLE001 - whatever it is, the hub waits for an answer.
        attempt.forget()
        # The lock must be free when the hub hears of it, and orders the attempt again.
        os.closerange(3, 256)
        answer(FAILED)
        os._exit(1)
    answer(STARTED if begun else TAKEN)
    if begun:
        attempt.attend()
        attempt.finish()


def is_locked(folder: str) -> bool:
    """Tell whether a shim has this attempt, on whatever machine that sees the folder."""
    fd, is_ours = try_lock(folder)
    os.close(fd)
    return not is_ours


def try_lock(folder: str) -> tuple[int, bool]:
    """Return the descriptor of the lock, and whether it could be had."""
    fd = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return fd, False
    return fd, True


def lock(folder: str) -> bool:
    """Be the only one who runs this attempt, as long as this process lives."""
    _, is_ours = try_lock(folder)
    if not is_ours:
        return False
    # It may have run to its end between the look of the hub and the lock.
    return not os.path.exists(f"{folder}/{STATUS}")  # noqa: PTH110 - pathlib is much to load.


def begin(attempt: Attempt) -> bool:
    attempt.say()
    if attempt.wants_stop() is not None:
        attempt.say(phase="exited", stopped=True, ended_at=attempt.now())
        return False
    attempt.start()
    return True


def answer(word: bytes) -> None:
    """Tell the hub, if it still lives, and let go of it for good."""
    try:
        os.write(1, word)
    except OSError:
        word = b""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in (0, 1, 2):
        os.dup2(null, number)
