"""Child process of a test's hub, seen from the tests."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from hublet.core.ids import random_bytes
from hublet.testing import environment
from hublet.testing.errors import CannotStart, HubletTestingError

_STOP_SECONDS = 15.0
_LAST_LINES = 20


class Port:
    """A free port of this machine, known before anything listens there and kept for a hub."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.number = 0
        self._reserve()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.number}"

    def take(self) -> socket.socket:
        """Return the socket; whoever takes it closes it, and it can be taken again later."""
        if self._socket is None:
            self._reserve()
        taken, self._socket = self._socket, None
        assert taken is not None  # noqa: S101 - for the type: it was reserved just now
        return taken

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _reserve(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", self.number))
        self.number = self._socket.getsockname()[1]


class HubProcess:
    """A hub in a process of its own: it ends with the tests, even when those are killed.

    It takes most of its start to import what it needs, and for that it need not know anything:
    so it may be made long before `start` tells it what kind of hub is wanted.
    """

    def __init__(self, port: Port) -> None:
        self.url = port.url
        self.admin_token = f"hf_{random_bytes(17).hex()}"
        self.data_dir = Path()
        self._folder = Path(tempfile.mkdtemp(prefix="hublet-test-"))
        self._log = self._folder / "hub.log"
        self._lock = threading.Lock()
        with self._log.open("wb") as log, port.take() as listener:
            self._popen = subprocess.Popen(  # noqa: S603 - it is ourselves
                [
                    # Without the folder of the tests: a `secrets.py` there is not the library's.
                    *(sys.executable, "-P", "-X", "utf8", "-m", "hublet.testing.child"),
                    *(str(os.getpid()), str(listener.fileno()), str(self._folder)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[listener.fileno()],
                env=environment.child_variables(),
                # Ctrl+C is for the tests: the hub of the one that runs must not go first.
                start_new_session=True,
            )
        self.pid = self._popen.pid

    def start(self, settings: Mapping[str, object], *, database_url: str | None = None) -> None:
        """Let it serve, with settings by their keys in the settings file; return when it does."""
        wanted = {
            "folder": str(self._folder),
            "settings": dict(settings),
            "database_url": database_url,
            "token": self.admin_token,
        }
        try:
            self._note(self._exchange(wanted))
        except HubletTestingError as error:
            raise CannotStart(f"The hub of the tests does not start: {error}") from None

    def reset(self) -> None:
        """Put a hub that has seen nothing in the place of the one there is."""
        self._note(self.ask("reset"))

    def ask(self, errand: str, **details: object) -> dict[str, Any]:
        """Have something done and return what is told of it."""
        return self._exchange({"do": errand, **details})

    def log(self, since: int = 0) -> str:
        """Return what it has written, from a position on."""
        with self._log.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

    def log_size(self) -> int:
        return self._log.stat().st_size

    def stop(self) -> None:
        """End it; nothing of it runs any more when this returns."""
        stdin, stdout = self._pipes
        stdin.close()
        try:
            self._popen.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _note(self, told: Mapping[str, Any]) -> None:
        self.data_dir = Path(told["data_dir"])

    def _exchange(self, said: Mapping[str, object]) -> dict[str, Any]:
        stdin, stdout = self._pipes
        # Two threads of a test may ask at once.
        with self._lock:
            try:
                stdin.write(json.dumps(said).encode() + b"\n")
                stdin.flush()
            except OSError:
                raise HubletTestingError(self._obituary()) from None
            line = stdout.readline()
        told: dict[str, Any] = json.loads(line) if line else {"error": self._obituary()}
        if "error" in told:
            raise HubletTestingError(told["error"])
        return told

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self._popen.stdin, self._popen.stdout
        assert stdin is not None  # noqa: S101 - for the type: it was asked for
        assert stdout is not None  # noqa: S101 - for the type: it was asked for
        return stdin, stdout

    def _obituary(self) -> str:
        last = "\n".join(self.log().splitlines()[-_LAST_LINES:]) if self._log.exists() else ""
        return f"Its process has ended. The last it wrote:\n{last}"
