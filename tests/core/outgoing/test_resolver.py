"""Names are looked up in threads that are counted and bounded in time."""

import asyncio
import socket
import threading

import pytest

from hublet.core.outgoing.client import Resolver
from patience import SOON_SECONDS


async def test_a_real_lookup_finds_this_machine() -> None:
    assert set(await Resolver().resolve("localhost")) <= {"127.0.0.1", "::1"}


class SlowNames:
    """getaddrinfo of a name server that does not answer until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.gone_on = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, *_arguments: object, **_options: object) -> list[object]:
        self.asked += 1
        self.gone_on.wait(SOON_SECONDS)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))] * 2


async def test_a_lookup_has_a_budget_and_holds_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowNames(monkeypatch)
    lookups = Resolver(budget_seconds=0.1, threads=2)

    results = await asyncio.gather(
        *(lookups.resolve(f"{number}.test") for number in range(5)), return_exceptions=True
    )

    assert [type(result) for result in results] == [OSError] * 5
    # Three never got a thread: those of the first two are still busy.
    assert slow.asked == 2
    slow.gone_on.set()
    assert await lookups.resolve("later.test") == ["8.8.8.8"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(socket.gaierror(socket.EAI_AGAIN, "again"), id="no answer"),
        pytest.param(UnicodeError("label too long"), id="a name that cannot be asked for"),
    ],
)
async def test_a_lookup_that_fails_is_an_error_of_the_network(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fail)

    with pytest.raises(OSError, match=r"again|looked up"):
        await Resolver().resolve("hooks.test")
