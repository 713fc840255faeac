"""What a page tells its reader to do: files to save, and transcripts of terminals.

A comment before a block says what the block itself cannot:

- `<!-- terminal: NAME -->`: it is another terminal, in which the last command goes on;
- `<!-- not run: REASON -->`: it cannot be run here.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

FIRST_TERMINAL = "the first"
INTERRUPT = "^C"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<word>terminal|not run): (?P<said>[^>]+?) -->\n\s*)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(r"# ([\w.-]+\.py)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command and what is shown then; without one, what a running command shows next."""

    command: str | None
    shown: str
    # Whether the reader ends it with Ctrl-C.
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    terminal: str
    steps: tuple[Step, ...]
    # Why it is not run, if it is not.
    reason: str | None


def transcripts_of(page: str) -> list[Transcript]:
    found = (match for match in _BLOCK.finditer(page) if match["language"] == "console")
    return [_transcript(match) for match in found]


def files_of(page: str) -> dict[str, str]:
    """Return the pieces of Python that begin with the name under which they are to be saved."""
    texts = [match["text"] for match in _BLOCK.finditer(page) if match["language"] == "python"]
    return {named[1]: text for text in texts if (named := _FILE.match(text))}


def languages_of(page: str) -> set[str]:
    return {match["language"] for match in _BLOCK.finditer(page)}


def _transcript(match: re.Match[str]) -> Transcript:
    word, said = match["word"], match["said"]
    return Transcript(
        terminal=said if word == "terminal" else FIRST_TERMINAL,
        steps=tuple(_steps(match["text"].splitlines())),
        reason=said if word == "not run" else None,
    )


def _steps(lines: list[str]) -> Iterator[Step]:
    command: str | None = None
    shown: list[str] = []
    waiting = iter(lines)
    for line in waiting:
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command is not None or shown:
            yield _step(command, shown)
        command, shown = line.removeprefix("$ "), []
        while not _is_whole(command):
            command = f"{command}\n{next(waiting)}"
    yield _step(command, shown)


def _step(command: str | None, shown: list[str]) -> Step:
    kept = [line for line in shown if line != INTERRUPT]
    return Step(command=command, shown="\n".join(kept), interrupted=len(kept) < len(shown))


def _is_whole(command: str) -> bool:
    """Tell whether a shell would run what was typed so far, or wait for another line."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True
