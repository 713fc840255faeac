"""The receiver of deliveries, a process of its own: it answers at once and notes what arrived.

Each endpoint has a port of its own, so that it counts as a host of its own. An endpoint that is
told to be a black hole accepts everything and never answers; the last ones may be told to be slow.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import uvloop

from benchmarks.figures import Spoiled
from benchmarks.processes import fetch, running

_READY_SECONDS = 15.0
_SLOW_SECONDS = 2.0
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Arrival(NamedTuple):
    """A request: its `webhook-id`, its endpoint, and the monotonic clock at its first byte."""

    id: str
    endpoint: int
    nanos: int


class Heap:
    """What all endpoints note in, and which of them are black holes: those of the first numbers."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.holes = 0
        self.slow: Collection[int] = ()
        self.unanswered: list[asyncio.Transport] = []

    def make_holes(self, count: int) -> None:
        """Let so many be black holes from now on; what waits for an answer is cut off."""
        self.holes = count
        for transport in self.unanswered:
            transport.abort()
        self.unanswered.clear()


class Endpoint(asyncio.Protocol):
    """Reads requests with a length, one after the other."""

    def __init__(self, heap: Heap, number: int) -> None:
        self._heap = heap
        self._number = number
        self._received = b""
        self._began = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._received:
            self._began = time.monotonic_ns()
        self._received += data
        while (whole := read_request(self._received)) is not None:
            length, delivery_id = whole
            self._received = self._received[length:]
            self._heap.arrivals.append(Arrival(delivery_id, self._number, self._began))
            if self._number in self._heap.slow:
                loop = asyncio.get_running_loop()
                loop.call_later(_SLOW_SECONDS, self._transport.write, _ANSWER)
            elif self._number >= self._heap.holes:
                self._transport.write(_ANSWER)
            else:
                self._heap.unanswered.append(self._transport)


def read_request(received: bytes) -> tuple[int, str] | None:
    """Return how long a whole request is and the id it carries; None when more is to come."""
    end_of_head = received.find(b"\r\n\r\n")
    if end_of_head < 0:
        return None
    head = received[: end_of_head + 2].lower()
    length = end_of_head + 4 + int(_field(head, b"\r\ncontent-length:") or 0)
    if len(received) < length:
        return None
    return length, _field(head, b"\r\nwebhook-id:").decode()


def _field(head: bytes, name: bytes) -> bytes:
    _, _, rest = head.partition(name)
    return rest.partition(b"\r\n")[0].strip()


class Control(asyncio.Protocol):
    """What the measuring process asks: how many arrived, which, and forget them."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        command, _, argument = data.split(b" ")[1].decode().strip("/").partition("/")
        body = msgspec.json.encode(self._do(command, argument))
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    def _do(self, command: str, argument: str) -> object:
        match command:
            case "arrivals":
                return self._heap.arrivals[int(argument) :]
            case "forget":
                self._heap.arrivals.clear()
            case "holes":
                self._heap.make_holes(int(argument))
        return len(self._heap.arrivals)


class Sink:
    """The sink as the measuring process sees it."""

    def __init__(self, control: int, ports: list[int]) -> None:
        self._control = control
        self.ports = ports

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}/hook" for port in self.ports]

    def count(self) -> int:
        return int(self._ask("count"))

    def arrivals(self, *, after: int = 0) -> list[Arrival]:
        """Return what arrived, in that order, without so many of the oldest."""
        return [Arrival(*each) for each in self._ask(f"arrivals/{after}")]

    def forget(self) -> None:
        self._ask("forget")

    def make_holes(self, count: int) -> None:
        self._ask(f"holes/{count}")

    def _ask(self, command: str) -> Any:
        return msgspec.json.decode(fetch(self._control, f"/{command}")[1])


@contextmanager
def sinking(
    folder: Path, *, endpoints: int, slow: int = 0, core: int | None = None
) -> Iterator[Sink]:
    """Run a sink with so many endpoints until the body ends."""
    output = folder / "sink.log"
    # What an earlier sink said is over.
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks.sink", "--endpoints", str(endpoints)]
    command += ["--slow", str(slow)]
    with running(command, output=output, core=core) as child:
        deadline = time.monotonic() + _READY_SECONDS
        while not (said := output.read_bytes()).endswith(b"]\n"):
            if child.process.poll() is not None or time.monotonic() > deadline:
                raise Spoiled(f"The sink did not start and said: {child.last_words()}")
            time.sleep(0.01)
        control, *ports = msgspec.json.decode(said, type=list[int])
        yield Sink(control, ports)


async def _serve(endpoints: int, slow: int) -> None:
    heap = Heap()
    heap.slow = range(endpoints - slow, endpoints)
    kinds: list[Callable[[], asyncio.Protocol]] = [partial(Control, heap)]
    kinds += [partial(Endpoint, heap, number) for number in range(endpoints)]
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(kind, "127.0.0.1", 0, backlog=1024) for kind in kinds]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    sys.stdout.buffer.write(msgspec.json.encode(ports) + b"\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sink", description=__doc__)
    parser.add_argument("--endpoints", type=int, required=True)
    parser.add_argument("--slow", type=int, default=0)
    given = parser.parse_args()
    # Whoever measures ends it; nothing needs to be put away.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(given.endpoints, given.slow))


if __name__ == "__main__":
    main()
