"""The command of the public client, run as a person runs it: with an empty cache, unless one is given."""

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Spoiled
from benchmarks.process_trees import watching_memory
from benchmarks.processes import COMMANDS, ROOT, clean_environment

_LONGEST_SECONDS = 1800.0
WITHOUT_XET = {"HF_HUB_DISABLE_XET": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRun:
    seconds: float
    # The most memory that the client had.
    megabytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StockClient:
    endpoint: str
    token: str
    folder: Path

    def new_home(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder, prefix="home-"))

    def upload(self, repo: str, content: Path, *, home: Path | None = None) -> ClientRun:
        """Upload a file or a folder under its own name."""
        return self._run(["upload", repo, str(content), content.name], home=home)

    def download(
        self, repo: str, path: str, *, variables: Mapping[str, str] | None = None
    ) -> ClientRun:
        target = tempfile.mkdtemp(dir=self.folder, prefix="copy-")
        return self._run(["download", repo, path, "--local-dir", target], variables=variables)

    def starting_upload(self, repo: str, content: Path) -> "subprocess.Popen[bytes]":
        command = ["upload", repo, str(content), content.name]
        return self._start(command, home=self.new_home())

    def _run(
        self,
        command: Sequence[str],
        *,
        home: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> ClientRun:
        start = time.perf_counter()
        process = self._start(command, home=home or self.new_home(), variables=variables)
        with watching_memory(process.pid) as peak:
            insist_on_success(process)
        return ClientRun(seconds=time.perf_counter() - start, megabytes=peak.all)

    def _start(
        self, command: Sequence[str], *, home: Path, variables: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        given = {
            "HF_ENDPOINT": self.endpoint,
            "HF_TOKEN": self.token,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        return subprocess.Popen(
            [str(COMMANDS / "hf"), *command],
            cwd=ROOT,
            env=clean_environment(given | dict(variables or {})),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def insist_on_success(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a client to end, or end it; one that failed spoils the measurement."""
    try:
        said, _ = process.communicate(timeout=_LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Spoiled(f"A client did not end within {_LONGEST_SECONDS:.0f} seconds.") from None
    finally:
        # Also when the run is interrupted.
        process.kill()
        process.wait()
    if process.returncode:
        raise Spoiled(f"A client ended with {process.returncode} and said: {said[-500:]!r}")
