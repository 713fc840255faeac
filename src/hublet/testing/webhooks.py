"""Webhooks of a test: deliveries of the hub, and an endpoint that receives them."""

import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar, cast

from hublet.core.clock import monotonic
from hublet.core.dataclasses import dataclass
from hublet.testing.errors import WaitedInVain
from hublet.testing.process import HubProcess

T = TypeVar("T")

_PAUSE_SECONDS = 0.01


def wait_until(look: Callable[[], T], *, seconds: float, otherwise: Callable[[T], str]) -> T:
    """Look again and again until there is something, and return it; else fail with a sentence."""
    deadline = monotonic() + seconds
    pause = threading.Event()
    while not (found := look()):
        if monotonic() > deadline:
            raise WaitedInVain(otherwise(found))
        pause.wait(_PAUSE_SECONDS)
    return found


Delivery = dict[str, Any]


class Webhooks:
    def __init__(self, process: HubProcess) -> None:
        self._process = process

    def deliveries(self, webhook: str = "") -> list[Delivery]:
        """Return the deliveries of a webhook, by its id or its URL, or of all; oldest first.

        Each is what `GET /api/settings/webhooks/{id}/deliveries/{id}` shows: state, event,
        payload, headers and every attempt.
        """
        found: list[Delivery] = self._process.ask("deliveries", webhook=webhook)["deliveries"]
        return found

    def wait_for(
        self,
        webhook: str = "",
        *,
        count: int = 1,
        state: str | None = "delivered",
        action: str | None = None,
        scope: str | None = None,
        timeout: float = 5.0,
    ) -> list[Delivery]:
        """Wait until there are so many deliveries of this kind, and return all of the kind.

        `state` is delivered, failed, unsent or pending; None takes any.
        """
        wanted = {"state": state, "action": action, "scope": scope}

        def look() -> list[Delivery]:
            found = [each for each in self.deliveries(webhook) if _matches(each, wanted)]
            return found if len(found) >= count else []

        return wait_until(
            look,
            seconds=timeout,
            otherwise=lambda _: self._complaint(webhook, count, wanted, timeout),
        )

    def _complaint(
        self, webhook: str, count: int, wanted: dict[str, str | None], seconds: float
    ) -> str:
        kind = ", ".join(f"{name} {value}" for name, value in wanted.items() if value is not None)
        found = Counter(map(_describe, self.deliveries(webhook)))
        there_are = "; ".join(f"{number} of {words}" for words, number in found.items())
        return (
            f"Waited {seconds:g} seconds for {count} deliveries ({kind or 'of any kind'}) of "
            f"{webhook or 'any webhook'}. There are: {there_are or 'none'}."
        )


def _matches(delivery: Delivery, wanted: dict[str, str | None]) -> bool:
    shown = {"state": delivery["state"], **delivery.get("event", {})}
    return all(value is None or shown.get(name) == value for name, value in wanted.items())


def _describe(delivery: Delivery) -> str:
    event = delivery.get("event", {})
    words = [delivery["state"], event.get("scope", "ping"), event.get("action", "")]
    words.append(f"after {delivery['attempts']} attempts")
    if "reason" in delivery:
        words.append(f"({delivery['reason']})")
    return " ".join(filter(None, words))


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
