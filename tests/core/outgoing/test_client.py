"""What is sent to a stranger, and what is told of the answer."""

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

import hublet
from hublet.core.outgoing import OutgoingClient, OutgoingResponse
from outgoing_requests import names, post, settings
from outgoing_servers import (
    Request,
    answering,
    answering_once,
    delaying,
    serving,
)


def answer_of(answer: OutgoingResponse) -> dict[str, object]:
    """All but the timings, which no test can know."""
    return {
        "status": answer.status,
        "reason": answer.reason,
        "detail": answer.detail,
        "body": answer.body,
        "headers": dict(answer.headers),
    }


async def test_a_request_is_sent_as_it_is_and_nothing_is_added(outgoing: OutgoingClient) -> None:
    async with serving(answering()) as stranger:
        answer = await outgoing.send(post(f"{stranger.url}?secret=a%2Bb", b'{"a": 1}'))

    assert answer_of(answer) == {
        "status": 200,
        "reason": None,
        "detail": "",
        "body": b"ok",
        "headers": {"content-type": "text/plain"},
    }
    assert answer.succeeded
    assert stranger.requests == [
        Request(
            line="POST /hook?secret=a%2Bb HTTP/1.1",
            headers={
                "host": f"127.0.0.1:{stranger.port}",
                "user-agent": f"Hublet/{hublet.__version__}",
                "accept-encoding": "identity",
                "content-type": "application/json",
                "content-length": "8",
            },
            body=b'{"a": 1}',
        )
    ]


async def test_a_get_has_no_body_and_no_type(outgoing: OutgoingClient) -> None:
    async with serving(answering()) as stranger:
        await outgoing.send(replace(post(stranger.url, b""), method="GET", headers={}))

    (request,) = stranger.requests
    assert request.line == "GET /hook HTTP/1.1"
    assert sorted(request.headers) == ["accept-encoding", "host", "user-agent"]


@pytest.mark.parametrize(
    ("host", "told"),
    [
        pytest.param("Hooks.TEST", "hooks.test", id="capitals"),
        pytest.param("hooks.test.", "hooks.test", id="a dot at the end"),
        pytest.param("b\xfccher.test", "xn--bcher-kva.test", id="an international name"),
        pytest.param("my_hooks", "my_hooks", id="a name of a container"),
    ],
)
async def test_a_name_may_be_written_in_many_ways(host: str, told: str) -> None:
    async with (
        OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"])) as client,
        serving(answering()) as stranger,
    ):
        answer = await client.send(post(f"http://{host}:{stranger.port}/\xe4?\xe4=a+b"))

    assert answer.status == 200
    (request,) = stranger.requests
    assert request.line == "POST /%C3%A4?%C3%A4=a+b HTTP/1.1"
    assert request.headers["host"] == f"{told}:{stranger.port}"


async def test_a_redirect_is_shown_and_not_followed(outgoing: OutgoingClient) -> None:
    away = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n"
    async with serving(answering(away)) as stranger:
        answer = await outgoing.send(post(stranger.url))

    assert answer_of(answer) == {
        "status": 302,
        "reason": None,
        "detail": "",
        "body": b"",
        "headers": {"location": "http://127.0.0.1:1/x"},
    }
    assert not answer.succeeded
    assert len(stranger.requests) == 1


async def test_only_headers_that_are_needed_are_kept_and_in_clean_text(
    outgoing: OutgoingClient,
) -> None:
    words = (
        b"HTTP/1.1 429 Slow\r\nRetry-After: 120\r\nSet-Cookie: a=b\r\nX-Powered-By: y\r\n"
        b"Content-Type: text/\xff\xfe\r\nLocation: /"
        + b"x" * 2000
        + b"\r\nContent-Length: 0\r\n\r\n"
    )
    async with serving(answering(words)) as stranger:
        answer = await outgoing.send(post(stranger.url))

    assert answer.status == 429
    assert answer.headers == {
        "retry-after": "120",
        "content-type": "text/??",
        "location": "/" + "x" * 1023,
    }


async def test_cookies_are_not_kept() -> None:
    words = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    async with (
        OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"])) as client,
        serving(answering(words)) as stranger,
    ):
        for _ in range(2):
            await client.send(post(f"http://hooks.test:{stranger.port}/"))

    assert ["cookie" in request.headers for request in stranger.requests] == [False, False]


async def test_no_more_than_asked_for_is_kept_of_a_body(outgoing: OutgoingClient) -> None:
    body = bytes(range(256)) * 20
    words = b"HTTP/1.1 500 Oh\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    async with serving(answering(words)) as stranger:
        usual = await outgoing.send(post(stranger.url))
        less = await outgoing.send(replace(post(stranger.url), keep_bytes=3))

    assert (usual.status, usual.body) == (500, body[:2048])
    assert less.body == body[:3]
    # Both bodies were read to their end, so the connection was good for a second request.
    assert stranger.connections == 1


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answering_once()) as proxy, serving(answering()) as stranger:
        for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        async with OutgoingClient(settings(test_mode=True)) as client:
            await client.send(post(stranger.url))

    assert (proxy.connections, stranger.connections) == (0, 1)


async def test_whoever_cancels_a_call_is_obeyed(outgoing: OutgoingClient) -> None:
    async with serving(delaying(30)) as stranger:
        call = asyncio.create_task(outgoing.send(post(stranger.url)))
        while not stranger.requests:
            await asyncio.sleep(0.01)
        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_client_opens_itself_with_its_first_call() -> None:
    client = OutgoingClient(settings(test_mode=True), resolve=names(["127.0.0.1"]))
    await client.close()
    async with serving(answering()) as stranger:
        url = f"http://hooks.test:{stranger.port}/"
        answers = await asyncio.gather(*(client.send(post(url)) for _ in range(3)))
        await client.close()

    assert [answer.status for answer in answers] == [200] * 3


def test_secrets_do_not_show_when_a_call_is_printed() -> None:
    shown = repr(post("http://example.com/?secret=s3cret", b"s3cret"))

    assert "s3cret" not in shown


def test_the_hub_starts_without_the_client_library() -> None:
    code = "import sys, hublet.app, hublet.core.outgoing; print('aiohttp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
