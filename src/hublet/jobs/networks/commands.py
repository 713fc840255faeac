"""The programs that speak to the kernel about networks: ip and nft."""

import shutil
import subprocess
from collections.abc import Sequence

from hublet.jobs.networks.records import NetworkFailed

_PLACES = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_PACKAGES = {"ip": "iproute2", "nft": "nftables"}
_PATIENCE_SECONDS = 20


def found(program: str) -> str:
    if (path := shutil.which(program, path=_PLACES)) is None:
        raise NetworkFailed(f"it needs {program}; install the package {_PACKAGES[program]}")
    return path


def ip(lines: Sequence[str]) -> None:
    """Do one thing after the other, in the namespace of this thread."""
    _run([found("ip"), "-batch", "-"], "\n".join(lines) + "\n")


def nft(text: str) -> None:
    """Change the rules of the namespace of this thread: all of the text, or nothing."""
    _run([found("nft"), "-f", "-"], text)


def _run(argv: list[str], text: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program; the words are ours.
            argv,
            check=False,
            input=text,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NetworkFailed(f"{argv[0]} could not be run: {error}") from error
    if done.returncode:
        raise NetworkFailed(" ".join(done.stderr.split()) or f"{argv[0]} failed")
