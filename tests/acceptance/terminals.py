"""Terminals in which a reader of a page types its commands: a shell each, with all it remembers."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from processes import STOP_SECONDS

# Stands behind what a command shows, followed by its exit code.
_END = "\0"

# A first start shows its secrets on a terminal only, and this shell writes to a file.
_SERVE_ON_A_TERMINAL = f"""
hublet() {{
  if [ "$1" = serve ]; then
    {sys.executable} {Path(__file__).with_name("terminal_program.py")} "$(type -P hublet)" "$@"
  else
    command hublet "$@"
  fi
}}"""


class Terminal:
    """A shell; what its commands show is gathered in a file."""

    def __init__(self, bash: subprocess.Popen[bytes], output: Path) -> None:
        self._bash = bash
        self._output = output
        self._read = 0
        self._type("trap : INT")
        self._type(_SERVE_ON_A_TERMINAL)

    def type(self, command: str) -> None:
        self._read = self._output.stat().st_size
        # Nothing that it starts may take the next command for its own input.
        self._type(f"{{ {command}\n}} </dev/null; printf '\\0%s\\n' $?")

    def shows(self) -> str:
        """Return what the command has shown so far and was not skipped, line by line."""
        text = self._rest().partition(_END)[0]
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def skip(self, lines: int) -> None:
        """Leave out lines of what is shown from now on."""
        for line in self._rest().splitlines(keepends=True)[:lines]:
            self._read += len(line.encode())

    def exit_code(self) -> int | None:
        """Return how the command ended, if it has."""
        _, end, code = self._rest().partition(_END)
        return int(code) if end and code.endswith("\n") else None

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.killpg(self._bash.pid, signal.SIGINT)

    def _type(self, line: str) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.write(f"{line}\n".encode())
        self._bash.stdin.flush()

    def _rest(self) -> str:
        return self._output.read_bytes()[self._read :].decode(errors="replace")


@contextmanager
def a_terminal(folder: Path, output: Path, variables: Mapping[str, str]) -> Iterator[Terminal]:
    with (
        output.open("wb") as file,
        subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as bash,
    ):
        try:
            yield Terminal(bash, output)
        finally:
            _close(bash)


def _close(bash: subprocess.Popen[bytes]) -> None:
    """Close the window: everything that still runs in it is asked to end, then ended."""
    os.killpg(bash.pid, signal.SIGTERM)
    try:
        bash.wait(STOP_SECONDS)
    finally:
        try:
            os.killpg(bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
