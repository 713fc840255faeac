"""Child process of a test's hub: starts it, sends it commands and stops it."""

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
    """A free port of this machine, reserved for a hub before anything listens on it."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.number = 0
        self._reserve()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.number}"

    def take(self) -> socket.socket:
        """Return the socket, which the caller closes; after that it can be taken again."""
        if self._socket is None:
            self._reserve()
        reserved, self._socket = self._socket, None
        assert reserved is not None  # noqa: S101 - for the type: it was reserved just now
        return reserved

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
    """A hub in a process of its own, which ends with the tests even when those are killed.

    Most of its start are imports, which need no settings: so the process may be created long
    before `start` sends it the settings.
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
                    # -P: a `secrets.py` in the folder of the tests must not replace the library's.
                    *(sys.executable, "-P", "-X", "utf8", "-m", "hublet.testing.child"),
                    *(str(os.getpid()), str(listener.fileno()), str(self._folder)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[listener.fileno()],
                env=environment.child_variables(),
                # Ctrl+C ends the tests first, and they end the hub.
                start_new_session=True,
            )
        self.pid = self._popen.pid

    def start(self, settings: Mapping[str, object], *, database_url: str | None = None) -> None:
        """Start to serve with these settings, named as in the settings file; return when it does."""
        options = {
            "folder": str(self._folder),
            "settings": dict(settings),
            "database_url": database_url,
            "token": self.admin_token,
        }
        try:
            self._update(self._exchange(options))
        except HubletTestingError as error:
            raise CannotStart(f"The hub of the tests does not start: {error}") from None

    def reset(self) -> None:
        """Replace the hub with an unused one."""
        self._update(self.command("reset"))

    def command(self, name: str, **arguments: object) -> dict[str, Any]:
        """Run a control command in the process (see `testing.child.control`); return its reply."""
        return self._exchange({"do": name, **arguments})

    def log(self, since: int = 0) -> str:
        """Return its log, from a position on."""
        with self._log.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

    def log_size(self) -> int:
        return self._log.stat().st_size

    def stop(self) -> None:
        """Stop the process, and wait until it has ended."""
        stdin, stdout = self._pipes
        stdin.close()
        try:
            self._popen.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _update(self, reply: Mapping[str, Any]) -> None:
        self.data_dir = Path(reply["data_dir"])

    def _exchange(self, request: Mapping[str, object]) -> dict[str, Any]:
        stdin, stdout = self._pipes
        # Two threads of a test may call at once.
        with self._lock:
            try:
                stdin.write(json.dumps(request).encode() + b"\n")
                stdin.flush()
            except OSError:
                raise HubletTestingError(self._last_output()) from None
            line = stdout.readline()
        reply: dict[str, Any] = json.loads(line) if line else {"error": self._last_output()}
        if "error" in reply:
            raise HubletTestingError(reply["error"])
        return reply

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self._popen.stdin, self._popen.stdout
        assert stdin is not None  # noqa: S101 - for the type: it is a pipe
        assert stdout is not None  # noqa: S101 - for the type: it is a pipe
        return stdin, stdout

    def _last_output(self) -> str:
        last = "\n".join(self.log().splitlines()[-_LAST_LINES:]) if self._log.exists() else ""
        return f"Its process has ended. The last it wrote:\n{last}"
