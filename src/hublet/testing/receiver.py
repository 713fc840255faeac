"""An endpoint that receives webhooks: real, on this machine, in threads of its own."""

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from hublet.core.light_dataclasses import dataclass
from hublet.testing.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came."""

    method: str
    # With its query.
    path: str
    # Names in lower case.
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """What it was sent so far, and how it answers."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/webhook"
        self._received: list[Received] = []
        self._planned: deque[int] = deque()
        self._always = 200
        self._lock = threading.Lock()

    @property
    def deliveries(self) -> list[Received]:
        """All that came, also what was answered with an error; oldest first."""
        with self._lock:
            return list(self._received)

    def wait_for(self, count: int = 1, *, timeout: float = 5.0) -> list[Received]:
        """Wait until so many requests have come, and return all."""
        return wait_until(
            lambda: found if len(found := self.deliveries) >= count else [],
            seconds=timeout,
            otherwise=lambda _: (
                f"Waited {timeout:g} seconds for {count} requests at {self.url}; "
                f"{len(self.deliveries)} came."
            ),
        )

    def answer_with(self, status: int, *, times: int | None = None) -> None:
        """Answer so from now on, or only so many times."""
        with self._lock:
            if times is None:
                self._always = status
                self._planned.clear()
            else:
                self._planned.extend([status] * times)

    def clear(self) -> None:
        """Forget what came."""
        with self._lock:
            self._received.clear()

    def take(self, received: Received) -> int:
        with self._lock:
            self._received.append(received)
            return self._planned.popleft() if self._planned else self._always


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        try:
            yield server.receiver
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    # A hub keeps connections open; nobody waits until it closes them.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def server_bind(self) -> None:
        super().server_bind()
        self.receiver = Receiver(self.server_port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        # Not of a webhook: a browser that an app has sent here.
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(method=self.command, path=self.path, headers=headers, body=body)
        receiver = cast("_Server", self.server).receiver
        self.send_response(receiver.take(received))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""
