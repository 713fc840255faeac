"""The load generator, a process of its own: a plan on standard input, the outcome on standard output.

It speaks just enough HTTP/1.1 to ask again as soon as an answer has come: the less it does,
the more of a machine of two cores is left to what is measured.
"""

import asyncio
import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import cast

import msgspec
import uvloop

from benchmarks.latencies import STEP_MICROS

# Places for eight digits each: whatever the numbers, the request keeps its length, and a
# content in base64 stays one.
CONNECTION = "%CALLER%"
NUMBER = "%NUMBER%"

_STEP_NANOS = STEP_MICROS * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """One request, sent over and over on each of the connections."""

    port: int
    request: bytes
    connections: int
    seconds: float
    # Stop after so many answers, should the time not be over before.
    most: int | None = None
    core: int | None = None
    # Put the number of the connection, and of its request, where the request has room for them.
    numbered: bool = False
    first_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Good answers and their latencies; others by status; connections the server closed."""

    answers: int
    seconds: float
    latencies: dict[int, int]
    refused: dict[int, int]
    lost: int

    @property
    def rate(self) -> float:
        return self.answers / self.seconds


class Tally:
    """What all connections of a run count in, until it is over."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._started = 0
        self._answers = 0
        self._latencies: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()
        self._lost = 0
        self._is_over = asyncio.Event()
        self.over = False

    def begin(self) -> None:
        self._started = perf_counter_ns()

    def note(self, status: int, nanos: int) -> None:
        if self.over:
            return
        if not 200 <= status < 300:
            self._refused[status] += 1
            return
        self._answers += 1
        self._latencies[nanos // _STEP_NANOS] += 1
        if self._answers == self._most:
            self.end()

    def lose(self) -> None:
        self._lost += not self.over

    def end(self) -> None:
        self.over = True
        self._is_over.set()

    async def wait(self) -> Outcome:
        await self._is_over.wait()
        return Outcome(
            answers=self._answers,
            seconds=(perf_counter_ns() - self._started) / 1e9,
            latencies=dict(self._latencies),
            refused=dict(self._refused),
            lost=self._lost,
        )


class Connection(asyncio.Protocol):
    """Asks, reads the answer to its end, asks again."""

    def __init__(self, requests: Iterator[bytes], tally: Tally) -> None:
        self._requests = requests
        self._tally = tally
        self._received = b""
        self._asked = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def ask(self) -> None:
        request = next(self._requests)
        self._asked = perf_counter_ns()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if (status := read_status(self._received)) is None:
            return
        self._received = b""
        self._tally.note(status, perf_counter_ns() - self._asked)
        if not self._tally.over:
            self.ask()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        self._tally.lose()

    def close(self) -> None:
        self._transport.abort()


def read_status(received: bytes) -> int | None:
    """Return the status of an answer that has come as a whole, or None when more is to come."""
    end_of_head = received.find(b"\r\n\r\n")
    if end_of_head < 0:
        return None
    head = received[: end_of_head + 2].lower()
    _, found, rest = head.partition(b"\r\ncontent-length:")
    length = int(rest[: rest.index(b"\r\n")]) if found else 0
    return int(head[9:12]) if len(received) >= end_of_head + 4 + length else None


def digits(number: int) -> str:
    return f"{number:08}"


def requests_of(plan: LoadPlan, connection: int) -> Iterator[bytes]:
    """Yield what this connection sends, without end."""
    if not plan.numbered:
        return itertools.repeat(plan.request)
    request = plan.request.replace(CONNECTION.encode(), digits(connection).encode())
    numbers = itertools.count(plan.first_number)
    return (request.replace(NUMBER.encode(), digits(number).encode()) for number in numbers)


async def run(plan: LoadPlan) -> Outcome:
    loop = asyncio.get_running_loop()
    tally = Tally(plan.most)
    connections: list[Connection] = []
    for number in range(plan.connections):
        make = partial(Connection, requests_of(plan, number), tally)
        connections.append((await loop.create_connection(make, "127.0.0.1", plan.port))[1])
    tally.begin()
    loop.call_later(plan.seconds, tally.end)
    for connection in connections:
        connection.ask()
    outcome = await tally.wait()
    for connection in connections:
        connection.close()
    return outcome


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=LoadPlan)
    if plan.core is not None:
        os.sched_setaffinity(0, {plan.core})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(run(plan))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
