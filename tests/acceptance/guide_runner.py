"""Somebody who reads a guide and does what it says, to the letter, in a folder of their own."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.processes import free_port

from acceptance.output_matching import OutputMatcher
from acceptance.terminals import Terminal, a_terminal
from acceptance.transcripts import FIRST_TERMINAL, Step, Transcript, files_of, transcripts_of
from hublet.testing import Browser
from patience import SOON_SECONDS
from processes import clean_environment

PASSWORD = "correct horse battery"

_PAUSE_SECONDS = 0.05
_PORTS = ("7860", "8000", "9000")
_CODE = re.compile(r"http://\S+/device\?user_code=[B-Z0-9-]{9}")
# On a terminal curl shows no progress; and here a refusal is a failure.
_CURLRC = "fail-with-body\nno-progress-meter\n"


class GuideRunner:
    """Types commands, saves files, and allows in a browser, as ada, what a command asks for."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self._folder = folder / "reader"
        self._home = folder / "home"
        for made in (self._folder, self._home):
            made.mkdir()
        (self._home / ".curlrc").write_text(_CURLRC)
        self._ends = ends
        # Other tests run at the same time, and want ports as well.
        self._ports = {port: str(free_port()) for port in _PORTS}
        self._names = OutputMatcher(self._ports)
        self._terminals: dict[str, Terminal] = {}
        self._allowed: set[str] = set()

    def follow(self, page: str) -> None:
        """Do what a page says from top to bottom, and insist that it shows what happens."""
        for name, text in files_of(page).items():
            (self._folder / name).write_text(self._names.translate(text), encoding="utf-8")
        for transcript in transcripts_of(page):
            if transcript.reason is None:
                self._follow(transcript)

    def _follow(self, transcript: Transcript) -> None:
        terminal = self._terminal(transcript.terminal)
        elsewhere = transcript.terminal != FIRST_TERMINAL
        for step in transcript.steps:
            if step.command is not None:
                terminal.type(self._names.translate(step.command))
            goes_on = step.interrupted or (elsewhere and step is transcript.steps[-1])
            self._watch(terminal, step, goes_on=goes_on)
            if step.interrupted:
                terminal.interrupt()
                self._wait_for_the_end(terminal, step)

    def _watch(self, terminal: Terminal, step: Step, *, goes_on: bool) -> None:
        """Wait until the terminal shows what the page shows; a command that ends, to its end."""
        deadline = time.monotonic() + SOON_SECONDS
        while terminal.exit_code() is None:
            real = terminal.shows()
            if goes_on and (lines := self._names.match(step.shown, real, whole=False)) is not None:
                terminal.skip(lines)
                return
            self._allow(real)
            assert time.monotonic() < deadline, _difference(step, real)
            time.sleep(_PAUSE_SECONDS)
        self._compare(terminal, step)

    def _compare(self, terminal: Terminal, step: Step) -> None:
        real = terminal.shows()
        if step.shown:
            assert self._names.match(step.shown, real, whole=True) is not None, _difference(
                step, real
            )
        else:
            # The page shows nothing of it, only that it does its work.
            assert terminal.exit_code() == 0, _difference(step, real)

    def _wait_for_the_end(self, terminal: Terminal, step: Step) -> None:
        deadline = time.monotonic() + SOON_SECONDS
        while terminal.exit_code() is None:
            assert time.monotonic() < deadline, f"Ctrl-C does not end {step.command}"
            time.sleep(_PAUSE_SECONDS)

    def _allow(self, real: str) -> None:
        """Open the page that a command asks to be opened, and allow what it shows."""
        for address in set(_CODE.findall(real)) - self._allowed:
            self._allowed.add(address)
            hub = f"http://localhost:{self._ports['8000']}"
            Browser(hub, name="ada", password=PASSWORD).allow(address)

    def _terminal(self, name: str) -> Terminal:
        if name not in self._terminals:
            output = self._home / f"terminal-{len(self._terminals)}"
            opened = a_terminal(self._folder, output, self._variables())
            self._terminals[name] = self._ends.enter_context(opened)
        return self._terminals[name]

    def _variables(self) -> dict[str, str]:
        variables = clean_environment(
            {
                "GRADIO_SERVER_PORT": self._ports["7860"],
                "HF_HUB_DISABLE_UPDATE_CHECK": "1",
                "HOME": str(self._home),
                "HUBLET_PORT": self._ports["8000"],
                "NO_COLOR": "1",
                "PYTHONUNBUFFERED": "1",
                "XDG_CONFIG_HOME": str(self._home / "config"),
            }
        )
        commands = Path(sys.executable).parent
        return variables | {"PATH": f"{commands}:{variables['PATH']}"}


@contextmanager
def a_guide_runner(folder: Path) -> Iterator[GuideRunner]:
    with ExitStack() as ends:
        yield GuideRunner(folder, ends)


def _difference(step: Step, real: str) -> str:
    return f"{step.command}\n--- the page shows\n{step.shown}\n--- it shows\n{real}"
