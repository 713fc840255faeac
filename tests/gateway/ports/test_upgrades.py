"""Visitors who ask to speak something else than HTTP with a job, and what is passed then."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from gateway.ports.job_ports import (
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


def switching(job: Job) -> Script:
    """A job that agrees to speak something else, and repeats what it hears."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await job.read_head(reader)
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n"
            b"X-Own: 1\r\n\r\nearly"
        )
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write(b"bye")

    return script


def open_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


async def test_another_protocol_is_passed_byte_by_byte(port_of: Opening) -> None:
    payload = bytes(range(256)) * 8000
    async with port_of(switching) as port, port.connected() as (reader, writer):
        head = port.head("GET /chat HTTP/1.1", "Upgrade: echo", "Connection: keep-alive, Upgrade")
        writer.write(head + b"at once")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head == (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n"
            b"X-Own: 1\r\n\r\n"
        )
        assert await reader.readexactly(12) == b"earlyat once"
        writer.write(payload)
        assert await reader.readexactly(len(payload)) == payload
        writer.write_eof()
        assert await reader.read() == b"bye"

    sent = port.job.heads[0]
    assert sent.endswith(b"connection: upgrade\r\nupgrade: echo\r\n\r\n")
    assert b"authorization" not in sent


@pytest.mark.parametrize("is_first", [True, False], ids=["the visitor", "the job"])
async def test_nothing_stays_open_when_both_have_ended_first(
    port_of: Opening, *, is_first: bool
) -> None:
    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            if is_first:
                await reader.read()

        return script

    async def speak(port: PortClient) -> None:
        async with port.connected() as (reader, writer):
            writer.write(port.head("GET / HTTP/1.1", "Upgrade: echo", "Connection: Upgrade"))
            await reader.readuntil(b"\r\n\r\n")
            if is_first:
                writer.write_eof()
            assert await reader.read() == b""

    async with port_of(script_of) as port:
        # The first one also opens what stays open, such as the database.
        await speak(port)
        before = open_files()
        await speak(port)
        async with asyncio.timeout(SOON_SECONDS):
            while open_files() > before:
                await asyncio.sleep(0.01)


async def test_a_job_that_does_not_switch_just_answers(port_of: Opening) -> None:
    async with port_of(responds(OK)) as port:
        answer = await port.raw(port.head("GET / HTTP/1.1", "Upgrade: echo", "Connection: Upgrade"))

    assert answer == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


async def test_a_job_that_does_not_switch_may_take_its_time(
    port_of: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, go_on = asyncio.Event(), asyncio.Event()

    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            is_asked.set()
            await go_on.wait()
            writer.write(OK)

        return script

    async with port_of(script_of) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.hub_port)
        writer.write(port.head("GET / HTTP/1.1", "Upgrade: echo", "Connection: Upgrade"))
        await is_asked.wait()
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + 600)
        await asyncio.sleep(0.2)
        go_on.set()
        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_a_visitor_who_leaves_before_the_job_has_agreed_is_not_waited_for(
    port_of: Opening,
) -> None:
    is_asked, has_left = asyncio.Event(), asyncio.Event()

    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            is_asked.set()
            try:
                await reader.read()
            finally:
                has_left.set()

        return script

    async with port_of(script_of) as port:
        async with port.connected() as (_, writer):
            writer.write(port.head("GET / HTTP/1.1", "Upgrade: echo", "Connection: Upgrade"))
            await is_asked.wait()
        async with asyncio.timeout(SOON_SECONDS):
            await has_left.wait()


H2C = ("Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Connection: Upgrade, HTTP2-Settings")


async def test_another_form_of_http_is_answered_in_this_one(port_of: Opening) -> None:
    """Otherwise its requests would reach the job with the hub's token, and unchecked."""
    async with port_of(responds(OK)) as port:
        answer = await port.raw(port.head("GET / HTTP/1.1", *H2C) + b"PRI * HTTP/2.0\r\n\r\n")

    assert answer == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    assert len(port.job.heads) == 1
    assert b"upgrade" not in port.job.heads[0]
    assert b"http2-settings" not in port.job.heads[0]


@pytest.mark.parametrize(
    ("framing", "sent"),
    [
        ("Content-Length: 3", b"abc"),
        ("Transfer-Encoding: chunked", b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
    ],
)
async def test_a_body_arrives_though_another_form_of_http_was_asked_for(
    port_of: Opening, framing: str, sent: bytes
) -> None:
    async with port_of(echo) as port, port.connected() as (reader, writer):
        writer.write(port.head("POST / HTTP/1.1", framing, *H2C) + sent[:2])
        await asyncio.sleep(0.05)
        writer.write(sent[2:] + b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        answer = await reader.read()

    assert answer == b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc"
    assert len(port.job.heads) == 1


async def test_a_body_before_another_protocol_is_refused(port_of: Opening) -> None:
    lines = ("Upgrade: websocket", "Connection: Upgrade", "Content-Length: 3")
    async with port_of(switching) as port:
        answer = await port.raw(port.head("POST / HTTP/1.1", *lines) + b"abc")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    sentence = "it has a body, and asks for another protocol"
    assert json.loads(body) == {"error": f"The request cannot be passed on: {sentence}."}
    assert port.job.heads == []


async def test_a_library_for_websockets_does_not_take_those_of_jobs(
    port_of: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So the server finds one that is installed.
    found = "uvicorn.protocols.websockets.auto.AutoWebSocketsProtocol"
    monkeypatch.setattr(found, lambda **_: asyncio.Protocol())
    async with port_of(switching) as port, port.connected() as (reader, writer):
        writer.write(port.head("GET / HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade"))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")


async def test_what_was_said_last_arrives_after_the_end(port_of: Opening) -> None:
    payload = bytes(20 << 20)

    def script_of(job: Job) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + payload)

        return script

    async with port_of(script_of) as port, port.connected() as (reader, writer):
        writer.write(port.head("GET / HTTP/1.1", "Upgrade: echo", "Connection: Upgrade"))
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)
        assert await reader.read() == payload
