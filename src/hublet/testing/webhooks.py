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


def wait_until(check: Callable[[], T], *, seconds: float, failure: Callable[[], str]) -> T:
    """Poll until the check returns something, and return that; else fail with a sentence."""
    deadline = monotonic() + seconds
    pause = threading.Event()
    while not (result := check()):
        if monotonic() > deadline:
            raise WaitedInVain(failure())
        pause.wait(_PAUSE_SECONDS)
    return result


Delivery = dict[str, Any]


class Webhooks:
    def __init__(self, process: HubProcess) -> None:
        self._process = process

    def deliveries(self, webhook: str = "") -> list[Delivery]:
        """Return the deliveries of a webhook, by its id or its URL, or of all; oldest first.

        Each is what `GET /api/settings/webhooks/{id}/deliveries/{id}` shows: state, event,
        payload, headers and every attempt.
        """
        reply = self._process.command("deliveries", webhook=webhook)
        deliveries: list[Delivery] = reply["deliveries"]
        return deliveries

    def wait_for(
        self,
        webhook: str = "",
        *,
        count: int = 1,
        state: str | None = "delivered",
        action: str | None = None,
        scope: str | None = None,
        timeout: float = 30.0,
    ) -> list[Delivery]:
        """Wait until there are so many deliveries of this kind, and return all of them.

        `state` is delivered, failed, unsent or pending; None matches any.
        """
        criteria = {"state": state, "action": action, "scope": scope}

        def check() -> list[Delivery]:
            matching = [each for each in self.deliveries(webhook) if _matches(each, criteria)]
            return matching if len(matching) >= count else []

        return wait_until(
            check,
            seconds=timeout,
            failure=lambda: self._timeout_message(webhook, count, criteria, timeout),
        )

    def _timeout_message(
        self, webhook: str, count: int, criteria: dict[str, str | None], seconds: float
    ) -> str:
        kind = ", ".join(f"{name} {value}" for name, value in criteria.items() if value is not None)
        counts = Counter(map(_describe, self.deliveries(webhook)))
        there_are = "; ".join(f"{number} of {kinds}" for kinds, number in counts.items())
        return (
            f"Waited {seconds:g} seconds for {count} deliveries ({kind or 'of any kind'}) of "
            f"{webhook or 'any webhook'}. There are: {there_are or 'none'}."
        )


def _matches(delivery: Delivery, criteria: dict[str, str | None]) -> bool:
    fields = {"state": delivery["state"], **delivery.get("event", {})}
    return all(value is None or fields.get(name) == value for name, value in criteria.items())


def _describe(delivery: Delivery) -> str:
    event = delivery.get("event", {})
    words = [delivery["state"], event.get("scope", "ping"), event.get("action", "")]
    words.append(f"after {delivery['attempts']} attempts")
    if "reason" in delivery:
        words.append(f"({delivery['reason']})")
    return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request that the receiver got."""

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
    """The requests of an endpoint so far, and its responses."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/webhook"
        self._received: list[Received] = []
        self._planned: deque[int] = deque()
        self._always = 200
        self._lock = threading.Lock()

    @property
    def deliveries(self) -> list[Received]:
        """All requests, also those answered with an error; oldest first."""
        with self._lock:
            return list(self._received)

    def wait_for(self, count: int = 1, *, timeout: float = 30.0) -> list[Received]:
        """Wait until so many requests have come, and return all."""
        return wait_until(
            lambda: all_so_far if len(all_so_far := self.deliveries) >= count else [],
            seconds=timeout,
            failure=lambda: (
                f"Waited {timeout:g} seconds for {count} requests at {self.url}; "
                f"{len(self.deliveries)} came."
            ),
        )

    def answer_with(self, status: int, *, times: int | None = None) -> None:
        """Respond with this status from now on, or only so many times."""
        with self._lock:
            if times is None:
                self._always = status
                self._planned.clear()
            else:
                self._planned.extend([status] * times)

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._lock:
            self._received.clear()

    def record(self, received: Received) -> int:
        """Keep a request, and return the status of its response."""
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
    # A hub keeps connections open; the end of a test does not wait for them.
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def server_bind(self) -> None:
        super().server_bind()
        self.receiver = Receiver(self.server_port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        # Not from a webhook: a browser that an app has redirected here.
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(method=self.command, path=self.path, headers=headers, body=body)
        receiver = cast("_Server", self.server).receiver
        self.send_response(receiver.record(received))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Log nothing."""
