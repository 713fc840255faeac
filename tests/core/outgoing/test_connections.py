"""Connections are kept, bounded and timed, and never trusted too far."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hublet.core.outgoing import FailureReason, OutgoingClient, connection_pool
from hublet.core.outgoing import timings as outgoing_timings
from hublet.core.outgoing.http_connection import HttpConnection
from outgoing_requests import names, post, settings
from outgoing_servers import OK, Talk, answering, certificate, delaying, dropping, serving
from patience import SOON_SECONDS


async def test_a_connection_is_kept_for_the_next_request(outgoing: OutgoingClient) -> None:
    async with serving(answering()) as stranger:
        first = await outgoing.send(post(stranger.url))
        second = await outgoing.send(post(stranger.url))

    assert (stranger.connections, len(stranger.requests)) == (1, 2)
    assert first.timings.connect is not None
    assert second.timings.connect is None
    assert second.timings.first_byte is not None


async def test_phases_are_told_for_a_new_connection(outgoing: OutgoingClient) -> None:
    async with serving(delaying(0.1)) as stranger:
        timings = (await outgoing.send(post(stranger.url))).timings

    assert (timings.dns, timings.tls) == (None, None)
    assert timings.connect is not None
    assert timings.first_byte is not None
    assert timings.first_byte >= 99_000
    assert timings.total >= timings.connect + timings.first_byte


async def test_phases_of_a_name_and_of_tls_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, tls = certificate(tmp_path, "hooks.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))

    async def resolve(_host: str) -> list[str]:
        await asyncio.sleep(0.05)
        return ["127.0.0.1"]

    async with (
        OutgoingClient(settings(test_mode=True), resolve=resolve) as client,
        serving(answering(), tls=tls) as stranger,
    ):
        url = f"https://hooks.test:{stranger.port}/"
        first = await client.send(post(url))
        second = await client.send(post(url))

    assert (first.status, second.status, stranger.connections) == (200, 200, 1)
    timings = first.timings
    assert timings.dns is not None
    assert timings.dns >= 49_000
    assert timings.connect is not None
    assert timings.tls is not None
    assert timings.tls > 0
    assert timings.first_byte is not None
    assert timings.total >= timings.dns + timings.connect + timings.tls + timings.first_byte
    assert (second.timings.dns, second.timings.connect, second.timings.tls) == (None, None, None)


async def test_a_body_that_is_too_long_ends_the_connection(outgoing: OutgoingClient) -> None:
    body = b"x" * 5000
    words = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body) + 1, body)
    async with serving(answering(words)) as stranger:
        request = replace(post(stranger.url), read_bytes=5000)
        answers = [await outgoing.send(request) for _ in range(2)]

    assert [(answer.status, answer.reason) for answer in answers] == [(200, None)] * 2
    assert stranger.connections == 2


async def test_a_connection_that_closed_while_idle_is_no_failure(outgoing: OutgoingClient) -> None:
    """As when a server is restarted in the very moment of a call."""

    async def behave(talk: Talk) -> None:
        await talk.listen()
        await talk.say(OK)
        # The second request on this connection is read and never answered.
        await talk.listen()

    async with serving(behave) as stranger:
        answers = [await outgoing.send(post(stranger.url, body)) for body in (b"1", b"2")]

    assert [answer.status for answer in answers] == [200, 200]
    assert [request.body for request in stranger.requests] == [b"1", b"2", b"2"]
    assert stranger.connections == 2
    assert answers[1].timings.connect is not None
    assert 0 < answers[1].timings.connect < answers[1].timings.total


async def test_a_new_connection_that_fails_is_not_tried_again(outgoing: OutgoingClient) -> None:
    async with serving(dropping) as stranger:
        answer = await outgoing.send(post(stranger.url))

    assert answer.reason is FailureReason.connection_lost
    assert len(stranger.requests) == 1


async def test_a_request_that_a_close_cuts_off_is_not_sent_again() -> None:
    arrived = asyncio.Event()

    async def behave(talk: Talk) -> None:
        await talk.listen()
        await talk.say(OK)
        await talk.listen()
        arrived.set()
        await talk.listen()

    async with (
        OutgoingClient(settings(test_mode=True)) as client,
        serving(behave) as stranger,
    ):
        await client.send(post(stranger.url, b"1"))
        call = asyncio.create_task(client.send(post(stranger.url, b"2")))
        await arrived.wait()
        await client.close()
        answer = await call

    assert answer.reason is FailureReason.connection_failed
    assert [request.body for request in stranger.requests] == [b"1", b"2"]


async def test_an_answer_that_was_not_asked_for_is_not_taken_for_the_next(
    outgoing: OutgoingClient,
) -> None:
    forged = b"HTTP/1.1 201 Forged\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(OK + forged, OK)) as stranger:
        answers = [await outgoing.send(post(stranger.url)) for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    assert stranger.connections == 2


async def test_calls_to_one_host_share_a_bounded_number_of_connections() -> None:
    async with (
        OutgoingClient(settings(test_mode=True), per_host=2) as client,
        serving(answering()) as stranger,
    ):
        answers = await asyncio.gather(*(client.send(post(stranger.url)) for _ in range(10)))

    assert [answer.status for answer in answers] == [200] * 10
    assert stranger.connections == 2


async def test_a_request_that_goes_out_again_makes_no_connection_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_SECONDS", 2 * SOON_SECONDS)
    bodies: list[bytes] = []
    closed = asyncio.Event()

    async def behave(talk: Talk) -> None:
        try:
            while True:
                bodies.append((await talk.listen()).body)
                if bodies == [b"1", b"2"]:
                    # The third waits for this connection, and gets the next one before the second does.
                    return
                await talk.say(OK)
        except asyncio.IncompleteReadError:
            closed.set()
            raise

    async with (
        OutgoingClient(settings(test_mode=True), per_host=1) as client,
        serving(behave) as stranger,
    ):
        await client.send(post(stranger.url, b"1"))
        again, waiting = (client.send(post(stranger.url, body)) for body in (b"2", b"3"))
        answers = await asyncio.gather(again, waiting)
        async with asyncio.timeout(SOON_SECONDS):
            await closed.wait()

    assert [answer.status for answer in answers] == [200, 200]
    assert bodies == [b"1", b"2", b"3", b"2"]


async def test_calls_that_time_out_together_leave_their_turns_to_others() -> None:
    """One ends while those that wait for its connection have been cancelled and not run yet."""

    async def behave(talk: Talk) -> None:
        request = await talk.listen()
        if request.body == b"slow":
            await talk.listen()
        else:
            await talk.say(OK)

    async with (
        OutgoingClient(settings(test_mode=True), per_host=2) as client,
        serving(behave) as stranger,
    ):
        slow = replace(post(stranger.url, b"slow"), deadline_seconds=0.1)
        late = await asyncio.gather(*(client.send(slow) for _ in range(8)))
        quick = [post(stranger.url, b"quick") for _ in range(4)]
        answers = await asyncio.gather(*(client.send(each) for each in quick))

    assert {answer.reason for answer in late} == {FailureReason.timeout}
    assert [answer.status for answer in answers] == [200] * 4


async def test_a_call_that_ends_as_its_connection_opens_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, tls = certificate(tmp_path, "hooks.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    made = HttpConnection.connection_made

    def end_call(self: HttpConnection, transport: asyncio.Transport) -> None:
        made(self, transport)
        call.cancel()

    async with (
        OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"])) as client,
        serving(answering(), tls=tls) as stranger,
    ):
        request = post(f"https://hooks.test:{stranger.port}/")
        with monkeypatch.context() as patched:
            patched.setattr(HttpConnection, "connection_made", end_call)
            call = asyncio.create_task(client.send(request))
            await asyncio.wait([call])
        answer = await client.send(request)

    assert call.cancelled()
    assert answer.status == 200


def test_a_stage_is_reached_once() -> None:
    """When several addresses are dialled, connecting began with the first."""
    begun = outgoing_timings.start_timing()
    outgoing_timings.mark_stage("dialled")
    first = begun.dialled
    outgoing_timings.mark_stage("dialled")

    assert first is not None
    assert begun.dialled == first
