"""Checks of the programs that the hub runs."""

import shutil
import subprocess

from hublet.cli.doctor.findings import Finding, ok, problem, warning

_CHECK = "git"
_SECONDS = 10.0


def check() -> Finding:
    """Look for git, which serves clones and pushes; everything else works without it."""
    path = shutil.which("git")
    if path is None:
        return warning(
            _CHECK,
            "It is not installed: clones and pushes are answered with 503.",
            "Install git, and restart the hub.",
        )
    try:
        told = subprocess.run(  # noqa: S603 - git itself, found in the path
            [path, "--version"], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return problem(_CHECK, f"{path} does not run: {error}.", "Install git anew.")
    return ok(_CHECK, f"{told.stdout.strip()} at {path}.")
