"""Servers that behave like strangers: on loopback, each with one way to answer or to fail."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Stranger:
    """What a server has seen so far."""

    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


class Talk:
    """One connection, from the server's side."""

    def __init__(
        self, stranger: Stranger, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._stranger = stranger
        self._reader = reader
        self._writer = writer

    async def listen_to_head(self) -> bytes:
        """Read the head of a request, and leave its body where it is."""
        return await self._reader.readuntil(b"\r\n\r\n")

    async def listen(self) -> Request:
        """Read one request; when the caller hangs up instead, the talk is over."""
        head = (await self.listen_to_head()).decode("latin-1")
        line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = {name.lower(): value for name, _, value in (f.partition(": ") for f in fields)}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        request = Request(line=line, headers=headers, body=body)
        self._stranger.requests.append(request)
        return request

    async def say(self, words: bytes) -> None:
        self._writer.write(words)
        await self._writer.drain()

    def finish(self) -> None:
        """Half-close: nothing more will be said, but the talk stays open."""
        self._writer.write_eof()

    def reset(self) -> None:
        """End the connection with a reset, as a crashed machine does."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Behaviour = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def serving(
    behave: Behaviour, *, everywhere: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Stranger]:
    """Run a server until the block ends; a connection ends with its behaviour.

    It listens on 127.0.0.1, or with `everywhere` on each address of this machine.
    """
    stranger = Stranger()
    talks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stranger.connections += 1
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        task.add_done_callback(talks.discard)
        try:
            await behave(Talk(stranger, reader, writer))
            writer.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()

    listener = _listen_everywhere() if everywhere else socket.create_server(("127.0.0.1", 0))
    stranger.port = listener.getsockname()[1]
    server = await asyncio.start_server(accept, sock=listener, ssl=tls)
    try:
        yield stranger
    finally:
        server.close()
        for task in list(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await asyncio.sleep(0)


def _listen_everywhere() -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("0.0.0.0", 0))


def answering(*answers: bytes) -> Behaviour:
    """Give each answer to one request, the last one to all that follow; connections stay open."""
    left = list(answers or (OK,))

    async def behave(talk: Talk) -> None:
        while True:
            await talk.listen()
            await talk.say(left.pop(0) if len(left) > 1 else left[0])

    return behave


def answering_once(answer: bytes = OK) -> Behaviour:
    """Answer one request, then close the connection."""

    async def behave(talk: Talk) -> None:
        await talk.listen()
        await talk.say(answer)

    return behave


async def dropping(talk: Talk) -> None:
    await talk.listen()


async def resetting(talk: Talk) -> None:
    await talk.listen()
    talk.reset()


async def hanging(talk: Talk) -> None:
    await talk.listen()
    await asyncio.sleep(60)


async def half_closing(talk: Talk) -> None:
    await talk.listen()
    talk.finish()
    await asyncio.sleep(60)


async def resetting_after_the_head(talk: Talk) -> None:
    await talk.listen()
    await talk.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin")
    await asyncio.sleep(0.05)
    talk.reset()


def delaying(seconds: float) -> Behaviour:
    async def behave(talk: Talk) -> None:
        await talk.listen()
        await asyncio.sleep(seconds)
        await talk.say(OK)

    return behave


def dripping(start: bytes, drop: bytes, *, every: float = 0.01) -> Behaviour:
    """Say the start at once and then the drop again and again, without end."""

    async def behave(talk: Talk) -> None:
        await talk.listen()
        await talk.say(start)
        while True:
            await talk.say(drop)
            await asyncio.sleep(every)

    return behave


def certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate that signs itself; returns its file and the server's side of TLS."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a stranger")])
    now = datetime.now(UTC)
    hosts: list[x509.GeneralName] = [x509.IPAddress(ip_address("127.0.0.1"))]
    hosts += [x509.DNSName(host) for host in names]
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, whole = folder / "trusted.pem", folder / "whole.pem"
    trusted.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    whole.write_bytes(secret + trusted.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(whole)
    return trusted, context
