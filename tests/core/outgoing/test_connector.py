"""Nothing that is refused is dialled: not by name, not by number, not on the second try."""

import asyncio
import re
import socket
from collections.abc import Sequence

import pytest
from yarl import URL

from hublet.core.outgoing import FailureReason, OutgoingClient, OutgoingResponse, dialer, session
from hublet.core.outgoing.urls import Destination
from outgoing_requests import names, post, settings
from outgoing_servers import answering, answering_once, serving

BLOCKED = "hooks.test leads to an address that this hub does not call."
SPELLINGS = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "localhost",
    "localhost.",
    "hooks.localhost",
    "%31%32%37.0.0.1",
    "\uff11\uff12\uff17.0.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "example.com@127.0.0.1",
]


def told(answer: OutgoingResponse) -> tuple[int | None, FailureReason | None, str]:
    return answer.status, answer.reason, answer.detail


@pytest.fixture
def unchecked_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the check of the URL had a hole: all that is left is the check at the dial."""

    def trust(url: str, _policy: object, *, max_length: int) -> Destination:
        parsed = URL(url)
        assert parsed.raw_host is not None
        assert parsed.port is not None
        return Destination(secure=parsed.scheme == "https", host=parsed.raw_host, port=parsed.port)

    monkeypatch.setattr(session, "parse_destination", trust)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="This machine has no IPv6.")
async def test_the_counting_server_is_reached_where_it_is_opened() -> None:
    """What the tests below count would otherwise prove nothing."""
    opened = settings("127.0.0.0/8", "::1/128", "0.0.0.0/32")
    async with OutgoingClient(opened) as client, serving(answering(), everywhere=True) as stranger:
        hosts = ("127.0.0.1", "127.0.0.2", "0.0.0.0", "localhost", "[::1]", "[::ffff:127.0.0.1]")
        answers = [await client.send(post(f"http://{host}:{stranger.port}/")) for host in hosts]

    assert [answer.status for answer in answers] == [200] * 6
    assert stranger.connections == 6


@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_spelling_of_this_machine_is_dialled(host: str) -> None:
    async with (
        OutgoingClient(settings()) as client,
        serving(answering(), everywhere=True) as stranger,
    ):
        answer = await client.send(post(f"http://{host}:{stranger.port}/"))

    assert (answer.status, answer.reason) == (None, FailureReason.blocked_target)
    assert stranger.connections == 0


@pytest.mark.usefixtures("unchecked_urls")
@pytest.mark.parametrize("host", [host for host in SPELLINGS if not re.search("%|host", host)])
async def test_the_dial_is_checked_on_its_own(host: str) -> None:
    async with (
        OutgoingClient(settings()) as client,
        serving(answering(), everywhere=True) as stranger,
    ):
        answer = await client.send(post(f"http://{host}:{stranger.port}/"))

    assert (answer.status, answer.reason) == (None, FailureReason.blocked_target)
    assert stranger.connections == 0


async def test_what_is_judged_is_what_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    def misread(_url: str, _policy: object, *, max_length: int) -> Destination:
        return Destination(secure=False, host="example.com", port=80)

    monkeypatch.setattr(session, "parse_destination", misread)
    async with OutgoingClient(settings(test_mode=True)) as client, serving(answering()) as stranger:
        answer = await client.send(post(stranger.url))

    assert told(answer) == (None, FailureReason.blocked_target, "The URL can be read in two ways.")
    assert stranger.connections == 0


async def test_a_url_that_is_refused_tells_why() -> None:
    async with OutgoingClient(settings()) as client:
        answer = await client.send(post("http://127.0.0.1:22/"))

    assert told(answer) == (
        None,
        FailureReason.blocked_target,
        "127.0.0.1 is a loopback address, which this hub does not call unless outgoing.allow names it.",
    )


@pytest.mark.usefixtures("unchecked_urls")
async def test_an_open_and_a_closed_port_of_a_refused_address_look_alike() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        closed = bound.getsockname()[1]
        async with OutgoingClient(settings()) as client, serving(answering()) as stranger:
            ports = (stranger.port, closed)
            answers = [await client.send(post(f"http://127.0.0.1:{port}/")) for port in ports]

    sentence = "127.0.0.1 leads to an address that this hub does not call."
    assert [told(answer) for answer in answers] == [
        (None, FailureReason.blocked_target, sentence)
    ] * 2


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["127.0.0.2"], id="this machine"),
        pytest.param(["10.0.0.1"], id="a private network"),
        pytest.param(["::ffff:127.0.0.2"], id="a mapped address"),
        pytest.param(["64:ff9b::127.0.0.2"], id="an address behind a translator"),
        pytest.param(["127.0.0.1", "127.0.0.2"], id="a good and a bad one"),
        pytest.param(["127.0.0.2", "127.0.0.1"], id="a bad and a good one"),
        pytest.param(["127.0.0.1", "fe80::1%eth0"], id="one of a wire"),
        pytest.param(["127.1"], id="an address in another spelling"),
        pytest.param(["not an address"], id="no address"),
    ],
)
async def test_a_name_with_any_refused_address_is_refused(addresses: Sequence[str]) -> None:
    # What the operator opened plays the public network here: no test may call a real one.
    async with (
        OutgoingClient(settings("127.0.0.1/32"), resolve=names(addresses)) as client,
        serving(answering(), everywhere=True) as stranger,
    ):
        answer = await client.send(post(f"http://hooks.test:{stranger.port}/"))

    assert told(answer) == (None, FailureReason.blocked_target, BLOCKED)
    assert stranger.connections == 0


async def test_a_name_that_moves_to_a_refused_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialer, "NAME_CACHE_SECONDS", 0)
    resolve = names(["127.0.0.1"], ["127.0.0.2"])
    async with (
        OutgoingClient(settings("127.0.0.1/32"), resolve=resolve) as client,
        serving(answering_once(), everywhere=True) as stranger,
    ):
        url = f"http://hooks.test:{stranger.port}/"
        answers = [await client.send(post(url)) for _ in range(2)]

    assert [answer.status for answer in answers] == [200, None]
    assert told(answers[1]) == (None, FailureReason.blocked_target, BLOCKED)
    assert stranger.connections == 1


async def test_a_failed_lookup_opens_no_way_to_a_refused_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialer, "NAME_CACHE_SECONDS", 0)
    resolve = names(socket.gaierror(socket.EAI_NONAME, "unknown"), ["127.0.0.1"])
    async with (
        OutgoingClient(settings(), resolve=resolve) as client,
        serving(answering()) as stranger,
    ):
        url = f"http://hooks.test:{stranger.port}/"
        answers = [await client.send(post(url)) for _ in range(2)]

    assert [told(answer) for answer in answers] == [
        (None, FailureReason.dns_failed, "The name hooks.test could not be looked up."),
        (None, FailureReason.blocked_target, BLOCKED),
    ]
    assert stranger.connections == 0


async def test_a_name_without_addresses_is_a_failed_lookup() -> None:
    async with OutgoingClient(settings(), resolve=names([])) as client:
        answer = await client.send(post("http://hooks.test/"))

    assert told(answer) == (
        None,
        FailureReason.dns_failed,
        "The name hooks.test could not be looked up.",
    )


async def test_a_lookup_that_hangs_ends_with_the_deadline() -> None:
    async def resolve(_host: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with OutgoingClient(settings(), resolve=resolve) as client:
        answer = await client.send(post("http://hooks.test/", deadline_seconds=0.2))

    assert told(answer) == (
        None,
        FailureReason.timeout,
        "hooks.test could not be reached within 0.2 seconds.",
    )


async def test_a_name_is_looked_up_once_for_many_calls() -> None:
    asked: list[str] = []

    async def resolve(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    async with (
        OutgoingClient(settings(test_mode=True), resolve=resolve) as client,
        serving(answering_once()) as stranger,
    ):
        url = f"http://hooks.test:{stranger.port}/"
        answers = await asyncio.gather(*(client.send(post(url)) for _ in range(5)))

    assert [answer.status for answer in answers] == [200] * 5
    assert asked == ["hooks.test"]


async def test_a_real_lookup_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_arguments: object, **_options: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    async with OutgoingClient(settings()) as client, serving(answering()) as stranger:
        told_of = told(await client.send(post(f"http://hooks.test:{stranger.port}/")))

    assert told_of == (None, FailureReason.blocked_target, BLOCKED)
    assert stranger.connections == 0
