"""The load generator of `oauth`, a process of its own: requests that cannot be sent twice.

A code is redeemed once, and a refresh token is known only from the answer before.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Literal

import msgspec
import uvloop

from benchmarks.load import Connection, Outcome, Tally, read_status
from benchmarks.rounds import request_bytes

# Where a request has room for the value that it spends.
VALUE = "%VALUE%"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthRequest:
    """One request, the same for every value but for that value."""

    path: str
    headers: dict[str, str]
    form: str
    # What happens to a value: spent with its request, replaced by the answer, or sent again.
    values_are: Literal["spent", "replaced", "kept"]

    def bytes_with(self, value: str) -> bytes:
        headers = {name: held.replace(VALUE, value) for name, held in self.headers.items()}
        return request_bytes(
            "POST" if self.form else "GET",
            self.path,
            headers=headers,
            body=self.form.replace(VALUE, value).encode(),
            media_type="application/x-www-form-urlencoded",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthPlan:
    port: int
    request: OAuthRequest
    values: list[str]
    connections: int
    seconds: float
    # Stop after so many answers, should the time not be over before.
    most: int | None = None
    core: int | None = None


class _Next(msgspec.Struct):
    refresh_token: str


class _Chain(Connection):
    """Asks with the refresh token that the answer before brought."""

    def __init__(self, request: OAuthRequest, value: str, tally: Tally) -> None:
        self._next = value
        super().__init__((request.bytes_with(self._next) for _ in itertools.count()), tally)

    def data_received(self, data: bytes) -> None:
        received = self._received + data
        if read_status(received) == HTTPStatus.OK:
            body = received.partition(b"\r\n\r\n")[2]
            self._next = msgspec.json.decode(body, type=_Next).refresh_token
        super().data_received(data)


class _Queue(Connection):
    """Takes the next of the requests that all connections share; the last one ends the run."""

    def ask(self) -> None:
        try:
            super().ask()
        except StopIteration:
            self._tally.end()


async def run(plan: OAuthPlan) -> Outcome:
    loop = asyncio.get_running_loop()
    tally = Tally(plan.most)
    made = [
        (await loop.create_connection(make, "127.0.0.1", plan.port))[1]
        for make in _makers(plan, tally)
    ]
    tally.begin()
    loop.call_later(plan.seconds, tally.end)
    for connection in made:
        connection.ask()
    outcome = await tally.wait()
    for connection in made:
        connection.close()
    return outcome


def _makers(plan: OAuthPlan, tally: Tally) -> Sequence[Callable[[], Connection]]:
    if plan.request.values_are == "replaced":
        return [partial(_Chain, plan.request, value, tally) for value in plan.values]
    requests: Iterator[bytes] = iter([plan.request.bytes_with(value) for value in plan.values])
    if plan.request.values_are == "kept":
        requests = itertools.cycle(requests)
    return [partial(_Queue, requests, tally)] * plan.connections


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=OAuthPlan)
    if plan.core is not None:
        os.sched_setaffinity(0, {plan.core})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(run(plan))
    sys.stdout.buffer.write(msgspec.json.encode(outcome))


if __name__ == "__main__":
    main()
