"""Fork server of shims: reads orders of the hub, and forks a shim for each attempt.

A forked shim has nothing to load and shares memory with the others. The fork server ends with the
hub; the shims do not.
"""

import fcntl
import gc
import marshal
import os
import signal
from typing import Any

from .attempt import STATUS_FILE, ShimAttempt

LOCK = "lock"
HEAD = 8
# Responses to an order: started, already started by another, failed.
STARTED, TAKEN, FAILED = b"s", b"t", b"f"


def main() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A SIGTERM that comes before a shim has its handlers stays pending until then.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # Pages that a shim writes to are copied for it: a garbage collection would write to all.
    gc.disable()
    gc.freeze()
    while (spec := receive_order(0)) is not None:
        os.write(1, fork_shim(spec))


def fork_shim(spec: dict[str, Any]) -> bytes:
    """Fork a shim for an attempt; return its response, FAILED if it is killed before that."""
    responses, response_fd = os.pipe2(os.O_CLOEXEC)
    if os.fork() == 0:
        os.dup2(response_fd, 1)
        os.close(response_fd)
        os.close(responses)
        run_shim(spec)
        # Without the interpreter's teardown, which would touch all pages.
        os._exit(0)
    os.close(response_fd)
    word = os.read(responses, 1)
    os.close(responses)
    return word or FAILED


def receive_order(fd: int) -> dict[str, Any] | None:
    """Return the next order; None when the hub ended, even in the middle of one."""
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


def run_shim(spec: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    attempt = ShimAttempt(spec)
    try:
        is_started = acquire_lock(spec["folder"]) and start_attempt(attempt)
    except Exception:  # noqa: BLE001 - whatever it is, the hub waits for a response.
        attempt.discard()
        # The lock must be free when the hub reads the response and orders the attempt again.
        os.closerange(3, 256)
        respond(FAILED)
        os._exit(1)
    respond(STARTED if is_started else TAKEN)
    if is_started:
        attempt.supervise()
        attempt.finish()


def is_locked(folder: str) -> bool:
    """Tell whether a shim runs this attempt, on any machine that shares the folder."""
    fd, is_ours = try_lock(folder)
    os.close(fd)
    return not is_ours


def try_lock(folder: str) -> tuple[int, bool]:
    """Return a descriptor of the lock file, and whether the lock was acquired."""
    fd = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return fd, False
    return fd, True


def acquire_lock(folder: str) -> bool:
    """Acquire the lock on this attempt until this process ends; False if it runs or has run."""
    _, is_ours = try_lock(folder)
    if not is_ours:
        return False
    # It may have run to its end between the check of the hub and the lock.
    return not os.path.exists(f"{folder}/{STATUS_FILE}")  # noqa: PTH110 - pathlib is much to load.


def start_attempt(attempt: ShimAttempt) -> bool:
    attempt.write_status()
    if attempt.requested_grace() is not None:
        attempt.write_status(phase="exited", stopped=True, ended_at=attempt.now())
        return False
    attempt.start()
    return True


def respond(word: bytes) -> None:
    """Send the response to the hub, if it still runs, and close all pipes to it."""
    try:
        os.write(1, word)
    except OSError:
        word = b""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in (0, 1, 2):
        os.dup2(null, number)
