"""Environments of the peers, beside ours and never in it."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import ROOT, clean_environment

PLACE = ROOT / ".venv" / "peers"
_LONGEST_SECONDS = 300.0


class PeerUnavailable(Exception):
    """The environment cannot be built here. The message says why, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A library, how it is installed, and the script that delivers with it."""

    name: str
    script: Path
    requirements: tuple[str, ...]


def python_of(peer: Peer, *, place: Path = PLACE) -> Path:
    """Return the interpreter of a peer's environment, which is built when it is first needed."""
    folder = place / peer.script.stem
    python = folder / "bin" / "python"
    done = folder / "installed.txt"
    wanted = "\n".join(peer.requirements)
    if not done.exists() or done.read_text() != wanted:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], peer)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *peer.requirements], peer)
        done.write_text(wanted)
    return python


def _run(command: Sequence[str], peer: Peer) -> None:
    try:
        done = subprocess.run(
            command,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailable(
            f"{peer.name} could not be installed ({type(error).__name__})."
        ) from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        why = said[-1].removeprefix("ERROR: ") if said else "no reason was given"
        raise PeerUnavailable(f"{peer.name} could not be installed: {why}")
