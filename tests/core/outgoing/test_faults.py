"""Strangers that fail, lie, dawdle or attack: each ends as an answer with a reason."""

import asyncio
import gzip
import socket
import tracemalloc
from pathlib import Path

import pytest

from hublet.core.outgoing import FailureReason, OutgoingClient, OutgoingResponse
from outgoing_requests import post
from outgoing_servers import (
    ENDLESS,
    OK,
    Behaviour,
    Talk,
    answering,
    answering_once,
    certificate,
    delaying,
    dripping,
    dropping,
    half_closing,
    hanging,
    resetting,
    resetting_after_the_head,
    serving,
)

HEAD = b"HTTP/1.1 200 OK\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

LOST = (FailureReason.connection_lost, "127.0.0.1 closed the connection before it answered.")
CUT = (
    FailureReason.connection_lost,
    "127.0.0.1 closed the connection before its answer was complete.",
)
BAD = (FailureReason.bad_answer, "The answer of 127.0.0.1 is not valid HTTP.")
LATE = (FailureReason.timeout, "127.0.0.1 did not answer within 1 seconds.")
UNFINISHED = (FailureReason.timeout, "127.0.0.1 did not finish its answer within 1 seconds.")


async def call(
    client: OutgoingClient, behave: Behaviour, seconds: float = 10.0
) -> OutgoingResponse:
    async with serving(behave) as stranger:
        return await client.send(post(stranger.url, deadline_seconds=seconds))


async def going_mad(talk: Talk) -> None:
    await talk.listen()
    await talk.say(ENDLESS + b"3\r\nabc\r\n")
    await asyncio.sleep(0.05)
    await talk.say(b"zz\r\n")
    await asyncio.sleep(60)


def told(answer: OutgoingResponse) -> tuple[int | None, FailureReason | None, str]:
    return answer.status, answer.reason, answer.detail


@pytest.mark.parametrize(
    ("behave", "status", "failure"),
    [
        pytest.param(dropping, None, LOST, id="closes without an answer"),
        pytest.param(resetting, None, LOST, id="resets without an answer"),
        pytest.param(answering_once(HEAD), None, LOST, id="closes within the head"),
        pytest.param(resetting_after_the_head, 200, CUT, id="resets after the head"),
        pytest.param(
            answering_once(HEAD + b"Content-Length: 9\r\n\r\nok"), 200, CUT, id="promises too much"
        ),
        pytest.param(
            answering_once(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"),
            200,
            CUT,
            id="closes within a chunk",
        ),
        pytest.param(
            answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 200, BAD, id="no chunk"
        ),
        pytest.param(going_mad, 200, BAD, id="sends nonsense for a chunk"),
        pytest.param(answering(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), None, BAD, id="is no web server"),
        pytest.param(answering(b"\x00\xff\x16\x03" * 10), None, BAD, id="sends noise"),
        pytest.param(answering(HEAD + b"Bad Name: x\r\n\r\n"), None, BAD, id="a bad header name"),
        pytest.param(answering(HEAD + b"X: a\x00b\r\n\r\n"), None, BAD, id="NUL in a header"),
        pytest.param(
            answering(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
            None,
            BAD,
            id="two lengths",
        ),
        pytest.param(
            answering(HEAD + b"Content-Length: -1\r\n\r\n"), None, BAD, id="a negative length"
        ),
        pytest.param(
            answering(HEAD + b"X: " + b"x" * 10_000 + b"\r\n\r\n"), None, BAD, id="a huge header"
        ),
        pytest.param(answering(HEAD + b"X: y\r\n" * 101 + b"\r\n"), None, BAD, id="many headers"),
        pytest.param(
            dripping(HEAD, b"X-Long: " + b"x" * 8000 + b"\r\n"), None, BAD, id="a head without end"
        ),
        pytest.param(dripping(CONTINUE, CONTINUE * 100), None, BAD, id="interim answers in floods"),
        pytest.param(dripping(CONTINUE, CONTINUE), None, BAD, id="interim answers one by one"),
    ],
)
async def test_a_broken_answer(
    outgoing: OutgoingClient,
    behave: Behaviour,
    status: int | None,
    failure: tuple[FailureReason, str],
) -> None:
    answer = await call(outgoing, behave)

    assert told(answer) == (status, *failure)
    assert not answer.succeeded


@pytest.mark.parametrize(
    ("behave", "status", "failure"),
    [
        pytest.param(hanging, None, LATE, id="never answers"),
        pytest.param(delaying(5), None, LATE, id="answers too late"),
        pytest.param(half_closing, None, LOST, id="says nothing more but stays"),
        pytest.param(dripping(HEAD, b"X: y\r\n"), None, LATE, id="drips its head"),
        pytest.param(
            dripping(HEAD + b"Content-Length: 99999\r\n\r\n", b"x"),
            200,
            UNFINISHED,
            id="drips its body",
        ),
        pytest.param(dripping(ENDLESS, b"1\r\nx\r\n"), 200, UNFINISHED, id="drips its chunks"),
    ],
)
async def test_the_deadline_covers_everything(
    outgoing: OutgoingClient,
    behave: Behaviour,
    status: int | None,
    failure: tuple[FailureReason, str],
) -> None:
    answer = await call(outgoing, behave, 1)

    assert told(answer) == (status, *failure)


async def test_what_arrived_before_the_failure_is_kept(outgoing: OutgoingClient) -> None:
    answer = await call(outgoing, resetting_after_the_head)

    assert (answer.body, answer.timings.first_byte is not None) == (b"begin", True)


async def test_a_few_interim_answers_are_well(outgoing: OutgoingClient) -> None:
    answer = await call(outgoing, answering(CONTINUE * 3 + OK))

    assert told(answer) == (200, None, "")


async def test_interim_answers_are_counted_for_each_request(outgoing: OutgoingClient) -> None:
    async with serving(answering(CONTINUE * 10 + OK)) as stranger:
        answers = [await outgoing.send(post(stranger.url)) for _ in range(3)]

    assert [answer.status for answer in answers] == [200] * 3
    assert stranger.connections == 1


async def test_an_endless_body_is_cut_off(outgoing: OutgoingClient) -> None:
    flood = dripping(ENDLESS, b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n", every=0)

    answer = await call(outgoing, flood)

    assert told(answer) == (200, None, "")
    assert answer.body == b"x" * 2048


async def test_a_compressed_bomb_stays_compressed(outgoing: OutgoingClient) -> None:
    bomb = gzip.compress(bytes(20_000_000))
    words = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    tracemalloc.start()
    answer = await call(outgoing, answering(words + bomb))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert told(answer) == (200, None, "")
    assert answer.body == bomb[:2048]
    assert peak < 5_000_000


async def test_an_upgrade_that_nobody_asked_for(outgoing: OutgoingClient) -> None:
    words = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello"
    answer = await call(outgoing, answering(words), 2)

    assert not answer.succeeded
    assert told(answer) == (101, None, "")


async def test_nobody_listens(outgoing: OutgoingClient) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        answer = await outgoing.send(post(f"http://127.0.0.1:{port}/"))

    assert told(answer) == (
        None,
        FailureReason.connection_refused,
        f"127.0.0.1:{port} refused the connection.",
    )


async def test_a_certificate_that_nobody_trusts(outgoing: OutgoingClient, tmp_path: Path) -> None:
    _, tls = certificate(tmp_path)
    async with serving(answering(), tls=tls) as stranger:
        answer = await outgoing.send(post(f"https://127.0.0.1:{stranger.port}/"))

    assert told(answer) == (
        None,
        FailureReason.tls_failed,
        "The certificate of 127.0.0.1 is not trusted: self-signed certificate.",
    )
    assert stranger.requests == []


async def test_a_server_without_tls(outgoing: OutgoingClient) -> None:
    async def behave(talk: Talk) -> None:
        await talk.say(b"HTTP/1.1 400 Bad\r\n\r\n")

    async with serving(behave) as stranger:
        answer = await outgoing.send(post(f"https://127.0.0.1:{stranger.port}/"))

    assert told(answer) == (
        None,
        FailureReason.tls_failed,
        f"127.0.0.1:{stranger.port} does not speak TLS as this hub does.",
    )


async def test_a_handshake_that_never_ends(outgoing: OutgoingClient) -> None:
    async def behave(_talk: Talk) -> None:
        await asyncio.sleep(60)

    async with serving(behave) as stranger:
        url = f"https://127.0.0.1:{stranger.port}/"
        answer = await outgoing.send(post(url, deadline_seconds=1))

    assert told(answer) == (
        None,
        FailureReason.timeout,
        f"No connection to 127.0.0.1:{stranger.port} could be made within 1 seconds.",
    )


async def test_one_slow_stranger_does_not_hold_up_another(outgoing: OutgoingClient) -> None:
    async with serving(hanging) as slow, serving(answering()) as quick:
        waiting = asyncio.create_task(outgoing.send(post(slow.url, deadline_seconds=1)))
        answers = [await outgoing.send(post(quick.url)) for _ in range(20)]

        assert [answer.status for answer in answers] == [200] * 20
        assert not waiting.done()
        assert (await waiting).reason is FailureReason.timeout
