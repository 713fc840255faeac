"""What passes between a visitor and a job: bytes, as they come, and nothing of the hub's."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import httpx2
import pytest
from fastapi import FastAPI

from gateway.ports.job_ports import (
    CLOSE,
    OK,
    Job,
    PortClient,
    Script,
    a_port_client,
    echo,
    responds,
)
from hublet.core.database import Database
from patience import SOON_SECONDS
from people import Headers

# How bytes are passed on does not depend on the database.
pytestmark = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)

Opening = Callable[[Callable[[Job], Script]], AbstractAsyncContextManager[PortClient]]


@pytest.fixture
def port_of(app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers) -> Opening:
    def opening(script: Callable[[Job], Script]) -> AbstractAsyncContextManager[PortClient]:
        return a_port_client(app, client, database, ada, script)

    return opening


async def test_a_job_sees_the_visitor_but_nothing_of_the_hub(port_of: Opening) -> None:
    async with port_of(responds(OK)) as port:
        answer = await port.raw(
            port.head(
                "GET /a%2Fb?c=d%20e HTTP/1.1",
                "Cookie: theirs=1; hublet_job=x; hublet_session=y; also=2; hublet_job_state=z",
                "X-Forwarded-For: 6.6.6.6",
                "X-Forwarded-Host: evil.example",
                "Forwarded: for=6.6.6.6",
                "X-Own: kept",
                "X-Hop: dropped",
                "Keep-Alive: timeout=5",
                "TE: trailers",
                "Expect: 100-continue",
                "Connection: close, x-hop",
            )
        )

        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        host = port.host()
        assert port.job.heads == [
            (
                "GET /a%2Fb?c=d%20e HTTP/1.1\r\n"
                f"host: {host}\r\n"
                "cookie: theirs=1; also=2\r\n"
                "x-own: kept\r\n"
                "x-forwarded-for: 127.0.0.1\r\n"
                "x-forwarded-proto: http\r\n"
                f"x-forwarded-host: {host}\r\n\r\n"
            ).encode()
        ]


async def test_an_authorization_that_is_not_the_hubs_reaches_a_public_port(
    port_of: Opening,
) -> None:
    async with port_of(responds(OK, OK)) as port:
        host = f"Host: {port.host(9000)}"
        for sent in ("Bearer of-the-job", port.token["Authorization"]):
            lines = ["GET / HTTP/1.1", host, f"Authorization: {sent}", CLOSE, "", ""]
            assert (await port.raw("\r\n".join(lines).encode())).endswith(b"\r\n\r\nok")

        shown = [b"authorization: " in head for head in port.job.heads]
        assert shown == [True, False]


async def test_an_answer_comes_as_it_is_without_what_is_of_one_connection(
    port_of: Opening,
) -> None:
    said = (
        b"HTTP/1.1 418 I am a teapot\r\nX-Own: 1\r\nConnection: x-hop\r\nX-Hop: 1\r\n"
        b"Keep-Alive: timeout=5\r\nSet-Cookie: a=b; Domain=jobs.localhost; Path=/\r\n"
        b"Set-Cookie: c=d\r\nTransfer-Encoding: chunked\r\nTrailer: x-later\r\n\r\n"
        b"3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Later: 1\r\n\r\n"
    )
    async with port_of(responds(said)) as port:
        answer = await port.raw(port.head("GET / HTTP/1.1", CLOSE))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 418 I'm a Teapot",
        b"x-own: 1",
        b"set-cookie: a=b; Path=/",
        b"set-cookie: c=d",
        b"connection: close",
        b"transfer-encoding: chunked",
    ]
    assert body == b"7\r\nabcdefg\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("line", "said", "expected"),
    [
        pytest.param(
            "HEAD / HTTP/1.1",
            b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\n",
            id="HEAD has the length of what it leaves out",
        ),
        pytest.param(
            "GET / HTTP/1.1",
            b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nx-a: 1\r\nconnection: close\r\n\r\n",
            id="204 has no body",
        ),
        pytest.param(
            "GET / HTTP/1.1",
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: x\r\n\r\n",
            b"HTTP/1.1 304 Not Modified\r\netag: x\r\nconnection: close\r\n\r\n",
            id="304 has no body whatever it says",
        ),
        pytest.param(
            "GET / HTTP/1.1",
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK,
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
            id="what is said on the way is not the answer",
        ),
    ],
)
async def test_an_answer_ends_where_it_ends(
    port_of: Opening, line: str, said: bytes, expected: bytes
) -> None:
    async with port_of(responds(said)) as port:
        assert await port.raw(port.head(line, CLOSE)) == expected


async def test_a_body_may_end_with_the_connection_of_the_job(port_of: Opening) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

        return script

    async with port_of(script_of) as port:
        answer = await port.raw(port.head("GET / HTTP/1.1", CLOSE))

    assert answer.endswith(b"\r\n\r\n9\r\nall of it\r\n0\r\n\r\n")


async def test_bodies_go_both_ways_whole(port_of: Opening) -> None:
    body = bytes(range(256)) * 12_000
    async with port_of(echo) as port, httpx2.AsyncClient(headers=port.token) as visitor:

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 70_001):
                yield body[start : start + 70_001]

        address = f"http://127.0.0.1:{port.hub_port}/"
        host = {"Host": port.host()}
        known = await visitor.post(address, headers=host, content=body)
        unknown = await visitor.post(address, headers=host, content=pieces())

    assert known.content == unknown.content == body
    assert b"content-length: %d\r\n" % len(body) in port.job.heads[0]
    assert b"transfer-encoding: chunked\r\n" in port.job.heads[1]


async def test_nothing_is_kept_back(port_of: Opening) -> None:
    """Each side says something only once it has heard the other."""

    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(3):
                await reader.readline()
                heard = await reader.readline()
                await reader.readline()
                writer.write(b"%x\r\n%b\r\n" % (len(heard), heard))
            writer.write(b"0\r\n\r\n")

        return script

    async with port_of(script_of) as port, port.connected() as (reader, writer):
        writer.write(port.head("POST / HTTP/1.1", "Transfer-Encoding: chunked"))
        await reader.readuntil(b"\r\n\r\n")
        for word in (b"one\n", b"two\n", b"six\n"):
            writer.write(b"4\r\n%b\r\n" % word)
            assert await reader.readexactly(9) == b"4\r\n%b\r\n" % word
        assert await reader.readexactly(5) == b"0\r\n\r\n"


SMUGGLED = "GET /smuggled HTTP/1.1"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["Content-Length: 4", "Transfer-Encoding: chunked"], id="two framings"),
        pytest.param(["Content-Length: 4", "Content-Length: 5"], id="two lengths"),
        pytest.param(["Content-Length: +4"], id="a length with a sign"),
        pytest.param(["Transfer-Encoding: chunked, identity"], id="an unknown coding"),
        pytest.param(["Transfer-Encoding: xchunked"], id="a coding that looks alike"),
        pytest.param(["Transfer-Encoding : chunked"], id="a space before the colon"),
        pytest.param(["Host: other"], id="two hosts"),
        pytest.param(["Authorization: Bearer x"], id="two authorizations"),
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(
    port_of: Opening, lines: list[str]
) -> None:
    async with port_of(responds(OK)) as port:
        answer = await port.raw(port.head("POST / HTTP/1.1", *lines, CLOSE) + b"0\r\n\r\nabcde")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert port.job.heads == []


async def test_chunks_that_are_none_never_reach_the_job_as_an_end(port_of: Opening) -> None:
    async with port_of(echo) as port:
        sent = port.head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + b"zz\r\nabc"
        answer = await port.raw(sent)

    assert b" 400 " in answer
    assert b" 200 " not in answer


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no HTTP"),
        pytest.param(b"", id="nothing at all"),
        pytest.param(b"HTTP/1.1 999 Go Away\r\nContent-Length: 0\r\n\r\n", id="no status"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="two framings",
        ),
    ],
)
async def test_an_answer_that_cannot_be_read_is_a_502(port_of: Opening, said: bytes) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(said)

        return script

    async with port_of(script_of) as port:
        answer = await port.raw(port.head("GET / HTTP/1.1", CLOSE))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    sentence = f"The job {port.job_id} gave no answer that could be read."
    assert json.loads(body) == {"error": sentence}


@pytest.mark.parametrize("lines", [(), ("Upgrade: x", "Connection: Upgrade")])
async def test_a_head_without_an_end_is_not_read_for_ever(
    port_of: Opening, lines: tuple[str, ...]
) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while True:
                writer.write(b"a" * 65536)
                await writer.drain()

        return script

    async with port_of(script_of) as port:
        answer = await port.raw(port.head("GET / HTTP/1.1", *(lines or (CLOSE,))))

    assert answer.startswith(b"HTTP/1.1 502 ")


async def test_what_follows_a_body_is_not_read_for_ever(port_of: Opening) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"3\r\nabc\r\n0\r\nX-Long: ")
            while True:
                writer.write(b"a" * 65536)
                await writer.drain()

        return script

    async with port_of(script_of) as port, port.connected() as (reader, writer):
        writer.write(port.head("GET / HTTP/1.1", CLOSE))
        await reader.readuntil(b"abc\r\n")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(5)


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(port_of: Opening) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            await writer.drain()

        return script

    async with port_of(script_of) as port, port.connected() as (reader, writer):
        writer.write(port.head("GET / HTTP/1.1"))
        await reader.readuntil(b"abc\r\n")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(5)


async def test_one_connection_serves_many_requests(port_of: Opening) -> None:
    async with port_of(echo) as port, port.connected() as (reader, writer):
        for _ in range(5):
            writer.write(port.head("GET / HTTP/1.1"))
            await reader.readuntil(b"\r\n\r\n")

        assert port.job.connections == 1
        assert len(port.job.heads) == 5


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", id="it says so"
        ),
        pytest.param(OK + b"HTTP/1.1 204 No Content\r\n\r\n", id="it says too much"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", id="it is an old one"),
    ],
)
async def test_a_connection_is_not_used_again_when(port_of: Opening, said: bytes) -> None:
    async with port_of(responds(said, OK)) as port, port.connected() as (reader, writer):
        for _ in range(2):
            writer.write(port.head("GET / HTTP/1.1"))
            await reader.readuntil(b"\r\n\r\nok")

        assert port.job.connections == 2


async def test_a_request_is_asked_again_when_a_kept_connection_was_closed(
    port_of: Opening,
) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(OK)
            await job.read_head(reader)

        return script

    async with port_of(script_of) as port, port.connected() as (reader, writer):
        for _ in range(2):
            writer.write(port.head("GET / HTTP/1.1"))
            await reader.readuntil(b"\r\n\r\nok")

        assert port.job.connections == 2
        assert len(port.job.heads) == 3


async def test_what_may_change_something_is_never_asked_twice(port_of: Opening) -> None:
    async with port_of(echo) as port, port.connected() as (reader, writer):
        for method in ("GET", "POST", "DELETE"):
            writer.write(port.head(f"{method} / HTTP/1.1"))
            await reader.readuntil(b"\r\n\r\n")

        assert port.job.connections == 3


async def test_a_visitor_who_leaves_is_not_waited_for(port_of: Opening) -> None:
    left = asyncio.Event()

    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                await reader.read()
            finally:
                left.set()

        return script

    async with port_of(script_of) as port:
        async with port.connected() as (reader, writer):
            writer.write(port.head("GET / HTTP/1.1"))
            await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(SOON_SECONDS):
            await left.wait()


async def test_a_job_that_reads_slowly_slows_the_visitor_down(port_of: Opening) -> None:
    go_on = asyncio.Event()
    read = 0

    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal read
            await job.read_head(reader)
            await go_on.wait()
            while read < 64 << 20:
                read += len(await reader.read(1 << 20))
            writer.write(OK)

        return script

    async with port_of(script_of) as port, port.connected() as (reader, writer):
        writer.write(port.head("POST / HTTP/1.1", f"Content-Length: {64 << 20}", CLOSE))
        sent = 0
        try:
            async with asyncio.timeout(1):
                while sent < 64 << 20:
                    writer.write(bytes(1 << 20))
                    sent += 1 << 20
                    await writer.drain()
        except TimeoutError:
            pass
        assert sent < 40 << 20
        go_on.set()
        while sent < 64 << 20:
            writer.write(bytes(1 << 20))
            sent += 1 << 20
            await writer.drain()
        assert (await reader.read()).endswith(b"\r\n\r\nok")


async def test_a_job_that_answers_before_it_heard_all_is_asked_anew(port_of: Opening) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(OK)
            await reader.read()

        return script

    async with port_of(script_of) as port:
        async with port.connected() as (reader, writer):
            writer.write(port.head("POST / HTTP/1.1", "Content-Length: 100") + b"the beginning")
            await reader.readuntil(b"\r\n\r\nok")
        await port.raw(port.head("GET / HTTP/1.1", CLOSE))

    assert port.job.connections == 2
