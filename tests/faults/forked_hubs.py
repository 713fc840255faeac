"""Hubs whose processes are forked from one that has imported all of it, so that a start takes moments."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from patience import SOON_SECONDS
from processes import READY_SECONDS, Place, clean_environment, wait_until

TESTS = Path(__file__).parents[1]
PROGRAM = TESTS / "faults" / "fork_server.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedHub:
    """A process that serves; nobody else gets its number before `ForkServer.serving` has ended."""

    address: str
    pid: int

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class ForkServer:
    """Serves a hub as often as is wanted, one process at a time; see the program `fork_server`."""

    def __init__(
        self, place: Place, *flags: str, variables: Mapping[str, str] | None = None
    ) -> None:
        self._folder = place.folder
        self.exit_code = 0
        paths = {"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"}
        self._popen = subprocess.Popen(
            [sys.executable, str(PROGRAM), "serve", "--json", *flags, *place.flags],
            cwd=place.folder,
            env=clean_environment({**(variables or {}), **paths}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def serving(self, *, at: int | None = None) -> Iterator[ForkedHub]:
        """Serve until the body has ended; with `at`, count steps, and die at that one if it comes."""
        names = {name: str(self._folder / name) for name in ("stdout", "stderr", "steps")}
        for name in names.values():
            Path(name).unlink(missing_ok=True)
        pid = self._ask(json.dumps({**names, "at": at}))
        told = Path(names["stdout"])
        wait_until(lambda: told.exists() and told.read_text().endswith("\n"), seconds=READY_SECONDS)
        try:
            yield ForkedHub(address=json.loads(told.read_text())["address"], pid=pid)
        finally:
            os.kill(pid, signal.SIGTERM)
            self.exit_code = self._ask("")
        assert self.exit_code in {0, -signal.SIGKILL}, Path(names["stderr"]).read_text()

    def _ask(self, line: str) -> int:
        _pipe(self._popen.stdin).write(f"{line}\n")
        _pipe(self._popen.stdin).flush()
        return int(_pipe(self._popen.stdout).readline())

    @property
    def was_killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL

    def steps(self) -> int:
        return int((self._folder / "steps").read_text())

    def close(self) -> None:
        _pipe(self._popen.stdin).close()
        self._popen.wait(SOON_SECONDS)
        _pipe(self._popen.stdout).close()


def _pipe(end: IO[str] | None) -> IO[str]:
    assert end is not None
    return end
