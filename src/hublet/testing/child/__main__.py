"""Starts the hub of tests: `python -m hublet.testing.child <parent's id> <socket> <folder>`."""

import gc
import json
import os
import shutil
import signal
import sys
import threading

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 5.0


def main(parent: int, listener: int, folder: str) -> None:
    # As `hublet serve` does; `hublet.serving` enables collections again.
    gc.disable()
    replies = _redirect_stdout(sys.stdout.fileno())
    threading.Thread(target=_exit_with_parent, args=(parent, folder), daemon=True).start()

    # Most of a start is this line. It needs no settings, so it runs before they are known.
    from hublet.testing.child.main_loop import run  # noqa: PLC0415 - as above

    if line := sys.stdin.readline():
        run(json.loads(line), listener=listener, replies=replies)


def _redirect_stdout(stdout: int) -> int:
    """Return the descriptor of replies to the tests; prints from now on go to the log."""
    replies = os.dup(stdout)
    os.dup2(sys.stderr.fileno(), stdout)
    return replies


def _exit_with_parent(parent: int, folder: str) -> None:
    """Exit when the tests end in any way; their pipe could be kept open by another process."""
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(_POLL_SECONDS)
    # Before the hub serves, the signal ends all of this at once.
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    pause.wait(_GRACE_SECONDS)
    os._exit(1)


main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
