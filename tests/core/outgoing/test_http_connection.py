"""HTTP/1.1 as strangers speak it, badly or with intent: nothing is smuggled in, and no response is taken for another."""

import asyncio
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from hublet.core.outgoing import FailureReason, OutgoingClient, connection_pool, dialer
from outgoing_requests import names, post, settings
from outgoing_servers import (
    OK,
    Behaviour,
    Talk,
    answering,
    answering_once,
    certificate,
    dripping,
    hanging,
    serving,
)
from patience import SOON_SECONDS

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
FORGED = b"HTTP/1.1 201 Forged\r\nContent-Length: 0\r\n\r\n"


async def statuses(
    client: OutgoingClient, behave: Behaviour, times: int = 2
) -> tuple[list[int | None], int]:
    """Send so many requests, one after the other; return their statuses, and how many connections that took."""
    async with serving(behave) as stranger:
        answers = [await client.send(post(stranger.url)) for _ in range(times)]
    return [answer.status for answer in answers], stranger.connections


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"X-Secret": "a\r\nX-Other: b"}, id="a line in a value"),
        pytest.param({"X-Secret": "a\nb"}, id="half an end of a line in a value"),
        pytest.param({"X-Secret": "a\rb"}, id="the other half"),
        pytest.param({"X-Secret": "a\0b"}, id="NUL in a value"),
        pytest.param({"X: y\r\nX-Secret": "a"}, id="a line in a name"),
        pytest.param({"X Secret": "a"}, id="a space in a name"),
        pytest.param({"": "a"}, id="no name"),
        pytest.param({"content-LENGTH": "0"}, id="a length of its own"),
        pytest.param({"Transfer-Encoding": "chunked"}, id="a framing of its own"),
        pytest.param({"Host": "other.test"}, id="a host of its own"),
        pytest.param({"Connection": "upgrade"}, id="a connection of its own"),
    ],
)
async def test_no_header_smuggles_anything_in(
    outgoing: OutgoingClient, headers: dict[str, str]
) -> None:
    async with serving(answering()) as stranger:
        with pytest.raises(ValueError, match=r"header|client itself"):
            await outgoing.send(replace(post(stranger.url), headers=headers))

    assert stranger.requests == []


async def test_no_method_smuggles_anything_in(outgoing: OutgoingClient) -> None:
    async with serving(answering()) as stranger:
        with pytest.raises(ValueError, match="method"):
            await outgoing.send(replace(post(stranger.url), method="GET / HTTP/1.1\r\nX: y\r\n"))

    assert stranger.connections == 0


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(
            HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            id="two framings",
        ),
        pytest.param(HEAD + b"Content-Length: 2, 2\r\n\r\nok", id="a list of lengths"),
        pytest.param(HEAD + b"Content-Length: 0x2\r\n\r\nok", id="a length in hexadecimal"),
        pytest.param(HEAD + b"Content-Length : 2\r\n\r\nok", id="a space before the colon"),
        pytest.param(HEAD + b"X: y\rContent-Length: 2\r\n\r\nok", id="half an end of a line"),
        pytest.param(b"HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n" * 20, id="no status"),
        pytest.param(b"HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n", id="no version"),
        pytest.param(CHUNKED + b"-2\r\nok\r\n0\r\n\r\n", id="a negative chunk"),
        pytest.param(CHUNKED + b"fffffffffffffffff\r\nok", id="a chunk beyond all numbers"),
        pytest.param(CHUNKED + b"0\r\n" + b"X: y\r\n" * 101 + b"\r\n", id="many trailers"),
    ],
)
async def test_what_could_be_read_in_two_ways_is_no_answer(
    outgoing: OutgoingClient, words: bytes
) -> None:
    async with serving(answering(words, OK)) as stranger:
        answers = [await outgoing.send(post(stranger.url)) for _ in range(2)]

    assert [answer.reason for answer in answers] == [FailureReason.bad_answer, None]
    assert stranger.connections == 2


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        pytest.param(b"", b"\r\n" * 1000, id="empty lines"),
        pytest.param(b"HTTP/1.1 200 ", b"x" * 1000, id="a reason"),
        pytest.param(HEAD + b"X", b"x" * 1000, id="the name of a header"),
        pytest.param(HEAD + b"X: ", b"x" * 1000, id="a header"),
        pytest.param(CHUNKED + b"1;", b"x" * 1000, id="what is said of a chunk"),
        pytest.param(CHUNKED + b"0\r\nX: ", b"x" * 1000, id="a trailer"),
    ],
)
async def test_no_line_goes_on_without_end(
    outgoing: OutgoingClient, start: bytes, drop: bytes
) -> None:
    async with serving(dripping(start, drop, every=0.001)) as stranger:
        answer = await outgoing.send(post(stranger.url, deadline_seconds=SOON_SECONDS))

    assert answer.reason is FailureReason.bad_answer


@pytest.mark.parametrize(
    "rubbish", [b"x", b"HTT", FORGED, b"\x00" * 300_000], ids=["a", "half", "whole", "much"]
)
async def test_what_follows_a_response_is_nobodys(outgoing: OutgoingClient, rubbish: bytes) -> None:
    assert await statuses(outgoing, answering(OK + rubbish, OK)) == ([200, 200], 2)


async def test_what_comes_while_a_connection_is_idle_is_nobodys(outgoing: OutgoingClient) -> None:
    async def behave(talk: Talk) -> None:
        await talk.listen()
        await talk.say(OK)
        await asyncio.sleep(0.02)
        await talk.say(FORGED)
        await asyncio.sleep(60)

    async with serving(behave) as stranger:
        first = await outgoing.send(post(stranger.url))
        await asyncio.sleep(1)
        second = await outgoing.send(post(stranger.url))

    assert (first.status, second.status, stranger.connections) == (200, 200, 2)


async def test_who_speaks_first_is_no_web_server(outgoing: OutgoingClient) -> None:
    async def behave(talk: Talk) -> None:
        await talk.say(FORGED)
        await asyncio.sleep(60)

    async with serving(behave) as stranger:
        answer = await outgoing.send(post(stranger.url, deadline_seconds=SOON_SECONDS))

    # Whether it came before or after the request was written, nobody can tell.
    assert answer.reason is FailureReason.bad_answer or answer.status == 201


async def test_an_answer_that_comes_too_late_is_nobodys(outgoing: OutgoingClient) -> None:
    async def behave(talk: Talk) -> None:
        await talk.listen()
        await asyncio.sleep(0.3)
        await talk.say(FORGED)
        await talk.listen()
        await talk.say(OK)

    async with serving(behave) as stranger:
        first = await outgoing.send(post(stranger.url, deadline_seconds=0.1))
        behaved = await outgoing.send(post(stranger.url))

    assert (first.reason, behaved.status) == (FailureReason.timeout, 201)
    assert stranger.connections == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_request_that_is_answered_early_ends_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    trusted, tls = certificate(tmp_path, "hooks.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))

    async def behave(talk: Talk) -> None:
        # It answers to the first bytes, and reads no more.
        await talk.listen_to_head()
        await talk.say(b"HTTP/1.1 413 Too much\r\nContent-Length: 0\r\n\r\n")
        await asyncio.sleep(60)

    async with (
        OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"])) as client,
        serving(behave, tls=tls if scheme == "https" else None) as stranger,
    ):
        url = f"{scheme}://hooks.test:{stranger.port}/"
        large = post(url, bytes(20_000_000), deadline_seconds=SOON_SECONDS)
        answers = [await client.send(large) for _ in range(2)]

    assert [answer.status for answer in answers] == [413, 413]
    assert stranger.connections == 2


@pytest.mark.parametrize(
    ("words", "status", "body", "connections"),
    [
        pytest.param(CHUNKED + b"2\r\nok\r\n0\r\nServer: y\r\n\r\n", 200, b"ok", 1, id="trailers"),
        pytest.param(CHUNKED + b"2;a=b\r\nok\r\n0\r\n\r\n", 200, b"ok", 1, id="said of a chunk"),
        pytest.param(CHUNKED + b"2 \r\nok\r\n0\r\n\r\n", 200, b"ok", 1, id="careless chunks"),
        pytest.param(HEAD[:-2] + b"\nContent-Length: 2\n\nok", 200, b"ok", 1, id="plain lines"),
        pytest.param(b"\r\n" + OK, 200, b"ok", 1, id="an empty line before"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            *(200, b"ok", 2),
            id="says that it closes",
        ),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", 2, id="HTTP/1.0"
        ),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
            *(200, b"ok", 1),
            id="HTTP/1.0 that stays",
        ),
        pytest.param(b"HTTP/1.1 204 Done\r\n\r\n", 204, b"", 1, id="nothing to say"),
        pytest.param(b"HTTP/1.1 304 As before\r\n\r\n", 304, b"", 1, id="nothing new"),
        pytest.param(b"HTTP/1.1 999 Own\r\nContent-Length: 0\r\n\r\n", 999, b"", 1, id="own"),
        pytest.param(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, b"", 1, id="no reason"),
        pytest.param(
            b"HTTP/1.1 103 Hints\r\nLocation: /no\r\n\r\n" + OK, 200, b"ok", 1, id="hints"
        ),
    ],
)
async def test_a_response_that_is_understood(
    outgoing: OutgoingClient, words: bytes, status: int, body: bytes, connections: int
) -> None:
    async with serving(answering(words)) as stranger:
        answers = [await outgoing.send(post(stranger.url)) for _ in range(2)]

    assert [(each.status, each.reason, each.body) for each in answers] == [(status, None, body)] * 2
    assert not {"server", "location"} & answers[0].headers.keys()
    assert stranger.connections == connections


@pytest.mark.parametrize("status", [204, 304])
async def test_a_body_where_none_is_allowed_is_nobodys(
    outgoing: OutgoingClient, status: int
) -> None:
    words = b"HTTP/1.1 %d Done\r\nContent-Length: %d\r\n\r\n%s" % (status, len(FORGED), FORGED)

    assert (await statuses(outgoing, answering(words)))[0] == [status] * 2


async def test_a_body_without_framing_ends_with_the_connection(outgoing: OutgoingClient) -> None:
    async with serving(answering_once(HEAD + b"\r\nall of it")) as stranger:
        answer = await outgoing.send(post(stranger.url))

    assert (answer.status, answer.reason, answer.body) == (200, None, b"all of it")


async def test_a_head_alone_is_the_answer_to_who_asks_for_it(outgoing: OutgoingClient) -> None:
    async with serving(answering(HEAD + b"Content-Length: 100\r\n\r\n")) as stranger:
        asked = replace(post(stranger.url, b"", deadline_seconds=SOON_SECONDS), method="HEAD")
        answers = [await outgoing.send(asked) for _ in range(2)]

    assert [(answer.status, answer.reason) for answer in answers] == [(200, None)] * 2


async def test_a_post_of_nothing_says_so(outgoing: OutgoingClient) -> None:
    async with serving(answering()) as stranger:
        await outgoing.send(post(stranger.url, b""))

    assert stranger.requests[0].headers["content-length"] == "0"


async def test_idle_connections_are_closed(
    outgoing: OutgoingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(connection_pool, "LOOK_SECONDS", 0.05)
    gone = asyncio.Event()

    async def behave(talk: Talk) -> None:
        await talk.listen()
        await talk.say(OK)
        try:
            await talk.listen()
        finally:
            gone.set()

    async with serving(behave) as stranger:
        await outgoing.send(post(stranger.url))
        async with asyncio.timeout(SOON_SECONDS):
            await gone.wait()

    assert len(stranger.requests) == 1


async def test_who_gives_up_waiting_takes_no_turn_from_others() -> None:
    async with (
        OutgoingClient(settings(test_mode=True), per_host=1) as client,
        serving(hanging) as stranger,
    ):
        holder = asyncio.create_task(client.send(post(stranger.url, deadline_seconds=0.5)))
        impatient = [
            asyncio.create_task(client.send(post(stranger.url, deadline_seconds=0.1)))
            for _ in range(3)
        ]
        patient = asyncio.create_task(client.send(post(stranger.url, deadline_seconds=3)))
        answers = await asyncio.gather(holder, *impatient, patient)

    assert {answer.reason for answer in answers} == {FailureReason.timeout}
    # The holder's and the patient one's: nobody else was ever let in.
    assert stranger.connections == 2


async def test_one_address_of_several_is_enough() -> None:
    for addresses in (["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]):
        async with (
            OutgoingClient(settings(test_mode=True), resolve=names(addresses)) as client,
            serving(answering_once()) as stranger,
        ):
            url = f"http://hooks.test:{stranger.port}/"
            answers = [await client.send(post(url)) for _ in range(2)]

        assert [answer.status for answer in answers] == [200, 200]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="This machine has no IPv6.")
async def test_an_ipv6_address_is_called(outgoing: OutgoingClient) -> None:
    async with serving(answering(), everywhere=True) as stranger:
        answer = await outgoing.send(post(f"http://[0:0::1]:{stranger.port}/"))

    assert answer.status == 200
    assert stranger.requests[0].headers["host"] == f"[::1]:{stranger.port}"


@pytest.mark.parametrize(
    ("host", "named", "told"),
    [
        pytest.param("hooks.test", "hooks.test", "hooks.test", id="its own"),
        pytest.param("hooks.test.", "hooks.test", "hooks.test", id="with a dot at the end"),
        pytest.param("b\xfccher.test", "xn--bcher-kva.test", "xn--bcher-kva.test", id="abroad"),
        pytest.param("127.0.0.1", "hooks.test", None, id="its address"),
    ],
)
async def test_a_certificate_is_for_the_host_of_the_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, named: str, told: str | None
) -> None:
    trusted, tls = certificate(tmp_path, named)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    asked: list[str | None] = []
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    async with (
        OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"])) as client,
        serving(answering(), tls=tls) as stranger,
    ):
        answers = [await client.send(post(f"https://{host}:{stranger.port}/")) for _ in range(2)]

    assert [(answer.status, answer.reason) for answer in answers] == [(200, None)] * 2
    assert (asked, stranger.connections) == ([told], 1)


async def test_a_certificate_of_another_host_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, tls = certificate(tmp_path, "other.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    async with (
        OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"])) as client,
        serving(answering(), tls=tls) as stranger,
    ):
        answer = await client.send(post(f"https://hooks.test:{stranger.port}/"))

    assert answer.reason is FailureReason.tls_failed
    assert answer.detail.startswith(
        "The certificate of hooks.test is not trusted: Hostname mismatch"
    )
    assert stranger.requests == []


def test_old_tls_is_not_spoken() -> None:
    context = dialer.tls_context()

    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
