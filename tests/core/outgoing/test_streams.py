"""Streams have the same guard and limits as other calls, and bodies of any size."""

from pathlib import Path

import pytest
from yarl import URL

from hublet.core.outgoing import FailureReason, OutgoingClient, OutgoingFailed, dialer, session
from hublet.core.outgoing.urls import Destination
from outgoing_requests import names, settings
from outgoing_servers import (
    OK,
    Behaviour,
    answering,
    answering_once,
    certificate,
    dripping,
    dropping,
    serving,
)
from patience import SOON_SECONDS

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def read(client: OutgoingClient, url: str) -> tuple[int, bytes | None]:
    async with client.stream("GET", url, {}, idle_seconds=SOON_SECONDS) as response:
        return response.status, await response.read(100_000_000)


async def reason_of(client: OutgoingClient, url: str) -> FailureReason:
    with pytest.raises(OutgoingFailed) as failed:
        await read(client, url)
    return failed.value.reason


async def test_a_large_body_is_read_in_pieces(outgoing: OutgoingClient) -> None:
    body = bytes(range(256)) * 10_000
    words = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with serving(answering(words)) as stranger:
        found = [await read(outgoing, stranger.url) for _ in range(2)]

    assert found == [(200, body)] * 2
    assert stranger.connections == 1


@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        pytest.param(dropping, FailureReason.connection_lost, id="closes without an answer"),
        pytest.param(
            answering_once(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"),
            FailureReason.connection_lost,
            id="promises too much",
        ),
        pytest.param(answering(b"SSH-2.0-x\r\n\r\n"), FailureReason.bad_answer, id="no web server"),
        pytest.param(
            dripping(CONTINUE, CONTINUE), FailureReason.bad_answer, id="interim answers in floods"
        ),
    ],
)
async def test_a_broken_answer(
    outgoing: OutgoingClient, behave: Behaviour, reason: FailureReason
) -> None:
    async with serving(behave) as stranger:
        assert await reason_of(outgoing, stranger.url) is reason


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433"])
async def test_no_refused_address_is_dialled(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with OutgoingClient(settings()) as client, serving(answering()) as stranger:
        url = f"http://{host}:{stranger.port}/"
        assert await reason_of(client, url) is FailureReason.blocked_target

        def trust(url: str, _policy: object, *, max_length: int) -> Destination:
            parsed = URL(url)
            assert parsed.raw_host is not None
            assert parsed.port is not None
            return Destination(secure=False, host=parsed.raw_host, port=parsed.port)

        # As if the check of the URL had a hole.
        monkeypatch.setattr(session, "parse_destination", trust)
        assert await reason_of(client, url) is FailureReason.blocked_target

    assert stranger.connections == 0


async def test_a_name_that_moves_to_a_refused_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialer, "NAME_CACHE_SECONDS", 0)
    resolve = names(["127.0.0.1"], ["127.0.0.2"])
    async with (
        OutgoingClient(settings("127.0.0.1/32"), resolve=resolve) as client,
        serving(answering_once(OK), everywhere=True) as stranger,
    ):
        url = f"http://hooks.test:{stranger.port}/"
        assert await read(client, url) == (200, b"ok")
        assert await reason_of(client, url) is FailureReason.blocked_target

    assert stranger.connections == 1


async def test_a_name_that_is_not_known() -> None:
    async with OutgoingClient(settings(), resolve=names([])) as client:
        assert await reason_of(client, "http://hooks.test/") is FailureReason.dns_failed


async def test_a_certificate_that_nobody_trusts(outgoing: OutgoingClient, tmp_path: Path) -> None:
    _, tls = certificate(tmp_path)
    async with serving(answering(), tls=tls) as stranger:
        url = f"https://127.0.0.1:{stranger.port}/"
        assert await reason_of(outgoing, url) is FailureReason.tls_failed

    assert stranger.requests == []
