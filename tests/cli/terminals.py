"""The real command on a real terminal."""

import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from fcntl import ioctl
from time import monotonic

from patience import SOON_SECONDS
from processes import HUBLET, clean_environment


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalRun:
    code: int
    # Everything that came to the screen, stdout and stderr.
    screen: str


def run_on_terminal(
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    answers: Mapping[str, str] | None = None,
    columns: int = 80,
) -> TerminalRun:
    """Run a command as a person does; when the screen shows a question, type its answer."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = clean_environment(variables)
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [*HUBLET, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment | {"TERM": "xterm"},
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - else keys such as Ctrl-C are only letters
    )
    os.close(slave)
    try:
        screen = _watch(master, dict(answers or {}))
        return TerminalRun(code=process.wait(SOON_SECONDS), screen=screen)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _take_terminal() -> None:
    ioctl(0, termios.TIOCSCTTY, 0)


def _watch(master: int, answers: dict[str, str]) -> str:
    """Read until the command lets go of the terminal."""
    screen, deadline = b"", monotonic() + SOON_SECONDS
    while monotonic() < deadline:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        screen += piece
        for question in [each for each in answers if each.encode() in screen]:
            os.write(master, answers.pop(question).encode())
    return screen.decode().replace("\r\n", "\n")
