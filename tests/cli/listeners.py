"""The real command that listens, as a process of its own."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import SOON_SECONDS
from processes import HUBLET, STOP_SECONDS, Process, Server, clean_environment, wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    process: Process

    @property
    def heard(self) -> list[Any]:
        """Return what it told so far, as it tells it with --json."""
        whole = self.process.stdout.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in whole if line.endswith("\n")]

    @property
    def lines(self) -> list[str]:
        return self.process.stdout.read_text().splitlines()

    @property
    def words(self) -> str:
        return self.process.stderr.read_text()

    def end(self, by: signal.Signals = signal.SIGINT) -> int:
        self.process.popen.send_signal(by)
        return self.process.popen.wait(STOP_SECONDS)


@contextmanager
def listening(
    server: Server, folder: Path, *arguments: str, group: str = "webhooks"
) -> Iterator[Listener]:
    """Run `hublet webhooks listen`, or that of another group, and wait until it hears."""
    stdout, stderr = folder / "listen.stdout", folder / "listen.stderr"
    variables = {"HUBLET_ENDPOINT": server.address, "HUBLET_TOKEN": server.token or ""}
    with stdout.open("wb") as out, stderr.open("wb") as err:
        popen = subprocess.Popen(
            [*HUBLET, group, "listen", *arguments],
            env=clean_environment(variables | {"XDG_CONFIG_HOME": str(folder)}),
            stdout=out,
            stderr=err,
        )
    process = Process(popen=popen, stdout=stdout, stderr=stderr)
    try:
        process.wait_for("Listening")
        yield Listener(process=process)
    finally:
        process.kill()


def wait_for_count(listener: Listener, count: int) -> None:
    wait_until(lambda: len(listener.lines) >= count, seconds=SOON_SECONDS)
