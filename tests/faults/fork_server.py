"""Fork server: forks the processes that serve a hub, each of which may die at a step of a write.

Run as a program with the arguments of `hublet`; each line on its input is a request in JSON for one
process: where it writes, and at which step of the first write it is killed, if it is. The answer is its
pid, and to the next line how it ended. What all of them need is imported once, before the first.
"""

import atexit
import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from hublet.cli import main

# What is imported before the fork; not with this module, which the hub's own worker processes import too.
_NEEDED = ("asyncpg", "obstore", "hublet.app", "hublet.serving", "hublet.worker")
# Steps 1 to 5 of a write: the cache, the quarantine, the upload, the transaction and the move.
_WATCHED = (
    "/repos/push/",
    "/repos/packs/",
    "/repos/refs/",
    "/repos/commits/",
    "/repos/git/quarantine.py",
    "/storage/object_store.py",
    "/database/postgresql.py",
)
# A write begins here: with the body of a push, or a commit over HTTP.
_BEGINS = {"receive_push", "create_commit"}


class Killer:
    """Counts the steps of the code that writes, from the beginning of a write, and ends the process at one."""

    def __init__(self, at: int) -> None:
        self.steps = 0
        self._at = at
        self._is_armed = False
        self._is_watched: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> None:
        code = frame.f_code
        watched = self._is_watched.get(code)
        if watched is None:
            watched = any(part in code.co_filename for part in _WATCHED)
            self._is_watched[code] = watched
        if not watched:
            return
        self._is_armed = self._is_armed or code.co_name in _BEGINS
        if self._is_armed:
            self.steps += 1
            if self.steps == self._at:
                os.kill(os.getpid(), signal.SIGKILL)


def _serve(request: dict[str, Any]) -> None:
    for name, number in (("stdout", 1), ("stderr", 2)):
        fd = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(fd, number)
    if request["at"] is not None:
        killer = Killer(request["at"])
        atexit.register(lambda: Path(request["steps"]).write_text(str(killer.steps)))
        threading.setprofile(killer)
        sys.setprofile(killer)
    main()


def _fork_each() -> None:
    for name in _NEEDED:
        import_module(name)
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            _serve(json.loads(line))
            return
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        # Not before it is asked for: until then the number belongs to nobody else.
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _fork_each()
