"""Scripts that receive, run as processes of their own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from patience import SOON_SECONDS
from processes import wait_until
from receiver.deliveries import BODY

_SECONDS = SOON_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    popen: subprocess.Popen[bytes]
    output: Path

    @property
    def said(self) -> str:
        return self.output.read_text()

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.said or self.popen.poll() is not None, seconds=_SECONDS)
        assert words in self.said, self.said

    @property
    def url(self) -> str:
        self.wait_for("ready to use")
        self.wait_for("hf webhooks create")
        [address, *_] = re.findall(r"POST (http://[^/]+)/", self.said)
        return str(address)

    def post(self, path: str, headers: Mapping[str, str], body: bytes = BODY) -> httpx2.Response:
        return httpx2.post(
            self.url + path, content=body, headers=dict(headers), timeout=_SECONDS, trust_env=False
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(_SECONDS)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait(_SECONDS)


@contextmanager
def running_script(
    text: str, folder: Path, variables: Mapping[str, str] | None = None
) -> Iterator[Script]:
    """Run a script until the body ends; any free port, a secret, and no proxy of the developer's."""
    script, output = folder / "script.py", folder / f"{len(list(folder.iterdir()))}.out"
    script.write_text(text)
    usual = {"GRADIO_SERVER_PORT": "0", "GRADIO_NUM_PORTS": "1", "WEBHOOK_SECRET": "coal"}
    with output.open("wb") as file:
        popen = subprocess.Popen(
            [sys.executable, str(script)],
            cwd=folder,
            env=os.environ | usual | {"PYTHONUNBUFFERED": "1"} | dict(variables or {}),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Script(popen=popen, output=output)
    finally:
        popen.kill()
        popen.wait()
