"""Load balancer for tests: alternates between nodes for each request, and asks them for readiness.

It speaks HTTP/1.1 in pure asyncio, in a thread of its own. Bodies are streamed in both directions, an
upgraded connection is passed on as bytes, and connections to nodes are kept, as nginx keeps them.
"""

import asyncio
import itertools
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from patience import SOON_SECONDS

# As slow as balancers are: a node that does not drain refuses connections meanwhile.
READINESS_SECONDS = 0.5
_LISTENER_SECONDS = 0.05

_CHUNK = 1 << 16
_MAX_HEAD = 1 << 19
_TLS_HANDSHAKE = b"\x16"
_NO_CONTENT, _NOT_MODIFIED, _SWITCHING = 204, 304, 101
# What is set in one process only: every node has to hear of it.
_OF_EACH_PROCESS = "/api/test-mode/"
_LOST = (ConnectionError, asyncio.IncompleteReadError, TimeoutError)

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Head:
    """The first line of a request or a response, and its headers."""

    line: str
    headers: list[tuple[str, str]]

    @classmethod
    async def read(cls, reader: asyncio.StreamReader) -> "Head | None":
        """Return the next head; None: the other side has ended between two of them.

        Or it wants TLS: clients of registries try that first, and wait ten seconds for an answer.
        """
        first = await reader.read(1)
        if first in {b"", _TLS_HANDSHAKE}:
            return None
        raw = first + await reader.readuntil(b"\r\n\r\n")
        line, *rest = raw.decode("latin-1").split("\r\n")
        pairs = (each.partition(":") for each in rest if each)
        return cls(line, [(name.strip().lower(), value.strip()) for name, _, value in pairs])

    def get(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    @property
    def status(self) -> int:
        return int(self.line.split(" ")[1])

    @property
    def method(self) -> str:
        return self.line.split(" ")[0]

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    @property
    def is_last(self) -> bool:
        return "close" in self.get("connection").lower() or "HTTP/1.0" in self.line

    def encode(self) -> bytes:
        lines = [self.line, *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


@dataclass(slots=True, eq=False)
class BalancedNode:
    """A node behind the balancer: its address, whether it is ready, and its idle connections."""

    host: str
    port: int
    is_ready: bool = False
    idle: list[Connection] = field(default_factory=list)

    def set_ready(self, *, is_ready: bool) -> None:
        self.is_ready = is_ready
        if not is_ready:
            while self.idle:
                self.idle.pop()[1].close()

    async def connect(self) -> Connection:
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.host, self.port, limit=_MAX_HEAD)

    async def ask_readiness(self) -> bool:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError, IndexError):
            async with asyncio.timeout(SOON_SECONDS):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                try:
                    writer.write(b"GET /readyz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
                    return (await reader.read()).split(b" ", 2)[1] == b"200"
                finally:
                    writer.close()
        return False


class Balancer:
    """Round robin over the nodes that are ready, one request after the other.

    A request that met a refused connection is given to the next node, unless `retries` is off. One
    that a node has received is never sent twice: the client gets 502 then, counted in `failures`.
    """

    def __init__(self, nodes: Sequence[str] = (), *, retries: bool = True) -> None:
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._listeners = [socket.create_server(("127.0.0.1", 0))]
        port = self._listeners[0].getsockname()[1]
        with suppress(OSError):
            self._listeners.append(socket.create_server(("::1", port), family=socket.AF_INET6))
        self.address = f"http://localhost:{port}"
        self.retries = retries
        self.failures: list[str] = []
        # Requests by the port of the node that answered.
        self.served: Counter[int] = Counter()
        self._turn = itertools.count()
        self._nodes: list[BalancedNode] = []
        for each in nodes:
            self.add(each)

    def add(self, address: str) -> None:
        """Send requests to this node too, from the moment on that it is ready."""
        url = urlsplit(address)
        assert url.hostname is not None
        self._nodes = [*self._nodes, BalancedNode(url.hostname, url.port or 80)]

    def count_ready(self) -> int:
        return sum(node.is_ready for node in self._nodes)

    def run(self) -> None:
        self._loop.run_until_complete(self._main())
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _main(self) -> None:
        servers = [
            await asyncio.start_server(self._serve, sock=listener, limit=_MAX_HEAD)
            for listener in self._listeners
        ]
        watching = asyncio.create_task(self._watch())
        await self._stopped.wait()
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(watching, *others, return_exceptions=True)
        for node in self._nodes:
            node.set_ready(is_ready=False)
        # Closed connections are told so in the next round.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _watch(self) -> None:
        while True:
            for node in self._nodes:
                node.set_ready(is_ready=await node.ask_readiness())
            await asyncio.sleep(READINESS_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(*_LOST, asyncio.LimitOverrunError):
                while (head := await Head.read(reader)) is not None:
                    if not await self._exchange(head, (reader, writer)):
                        break
        except asyncio.CancelledError:
            # The streams of asyncio would log it.
            return
        finally:
            writer.close()

    async def _exchange(self, head: Head, client: Connection) -> bool:
        """Answer one request; return whether the connection of the client may have another."""
        found = await self._choose()
        if found is None:
            return self._fail(client[1], head, 503, "no node is ready")
        node, upstream = found
        is_for_all = head.path.startswith(_OF_EACH_PROCESS) and head.method != "GET"
        _forward(head, client[1], upstream[1])
        sending = asyncio.create_task(
            self._broadcast(head, client, node, upstream[1])
            if is_for_all
            else _copy_body(head, client[0], upstream[1])
        )
        goes_on = is_kept = False
        try:
            goes_on, is_kept = await self._answer(head, client, node, upstream)
        except _LOST as error:
            if not client[1].transport.is_closing() and not client[0].at_eof():
                self._fail(client[1], head, 502, f"{node.port}: {error!r}")
        finally:
            is_sent = sending.done()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            if is_kept and is_sent and node.is_ready:
                node.idle.append(upstream)
            else:
                upstream[1].close()
        return goes_on and is_sent and not head.is_last

    async def _choose(self) -> tuple[BalancedNode, Connection] | None:
        """Return the next node that is ready and takes a connection."""
        for _ in self._nodes:
            ready = [node for node in self._nodes if node.is_ready]
            if not ready:
                return None
            node = ready[next(self._turn) % len(ready)]
            try:
                return node, await node.connect()
            except OSError:
                node.set_ready(is_ready=False)
                if not self.retries:
                    return None
        return None

    def _fail(self, client: asyncio.StreamWriter, head: Head, status: int, reason: str) -> bool:
        self.failures.append(f"{head.line}: {status} {reason}")
        client.write(f"HTTP/1.1 {status} Balancer\r\nContent-Length: 0\r\n\r\n".encode())
        client.close()
        return False

    async def _answer(
        self, request: Head, client: Connection, node: BalancedNode, upstream: Connection
    ) -> tuple[bool, bool]:
        """Pass the response on; return whether the client's connection goes on, and the node's."""
        head = await _read_response(upstream[0])
        while head.status < 200 and head.status != _SWITCHING:
            client[1].write(head.encode())
            head = await _read_response(upstream[0])
        self.served[node.port] += 1
        is_kept, is_framed = not head.is_last, True
        if head.status != _SWITCHING:
            # That the node closes its connection says nothing about the client's.
            head.headers = [each for each in head.headers if each[0] != "connection"]
        client[1].write(head.encode())
        if head.status == _SWITCHING:
            await _splice(client, upstream)
            return False, False
        if request.method != "HEAD" and head.status not in {_NO_CONTENT, _NOT_MODIFIED}:
            watching = asyncio.create_task(_abort_when_gone(client[0], upstream[1]))
            try:
                is_framed = await _copy_body(head, upstream[0], client[1], to_the_end=True)
            except _LOST:
                # A client that leaves without reading to the end resets its connection.
                if not (client[0].at_eof() or client[1].transport.is_closing()):
                    self.failures.append(f"{request.line}: {node.port} broke off")
                # Nobody shall take this for a whole response.
                client[1].transport.abort()
                raise
            finally:
                watching.cancel()
        await client[1].drain()
        return is_framed, is_framed and is_kept

    async def _broadcast(
        self, head: Head, client: Connection, first: BalancedNode, to: asyncio.StreamWriter
    ) -> bool:
        """Send the request to the first node, and a copy of it to each of the others."""
        body = await client[0].readexactly(int(head.get("content-length") or 0))
        for node in self._nodes:
            if node is not first and node.is_ready:
                reader, writer = await asyncio.open_connection(node.host, node.port)
                kept = [each for each in head.headers if each[0] != "connection"]
                copy = Head(head.line, [*kept, ("connection", "close")])
                writer.write(copy.encode() + body)
                await reader.read()
                writer.close()
        to.write(body)
        await to.drain()
        return True


def _forward(head: Head, client: asyncio.StreamWriter, upstream: asyncio.StreamWriter) -> None:
    """Send the head of a request, with the address of the client."""
    hop = set() if head.get("upgrade") else {"connection", "keep-alive"}
    kept = [each for each in head.headers if each[0] not in hop]
    address = client.get_extra_info("peername")[0]
    upstream.write(Head(head.line, [*kept, ("x-forwarded-for", address)]).encode())


async def _read_response(reader: asyncio.StreamReader) -> Head:
    head = await Head.read(reader)
    if head is None:
        raise ConnectionResetError("the node closed the connection without a response")
    return head


async def _copy_body(
    head: Head,
    source: asyncio.StreamReader,
    target: asyncio.StreamWriter,
    *,
    to_the_end: bool = False,
) -> bool:
    """Copy the body that the head announces; return whether the connection goes on after it."""
    if "chunked" in head.get("transfer-encoding").lower():
        await _copy_chunks(source, target)
    elif length := head.get("content-length"):
        await _copy_bytes(source, target, int(length))
    elif to_the_end:
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        return False
    return True


async def _copy_bytes(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, count: int
) -> None:
    while count:
        data = await source.read(min(count, _CHUNK))
        if not data:
            raise ConnectionResetError("a body ended early")
        count -= len(data)
        target.write(data)
        await target.drain()


async def _copy_chunks(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while True:
        line = await source.readuntil(b"\r\n")
        target.write(line)
        if size := int(line.split(b";")[0], 16):
            await _copy_bytes(source, target, size + 2)
            continue
        while line != b"\r\n":
            line = await source.readuntil(b"\r\n")
            target.write(line)
            await target.drain()
        return


async def _splice(one: Connection, other: Connection) -> None:
    """Pass bytes on in both directions until one side has ended."""

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(_CHUNK):
                target.write(data)
                await target.drain()

    ways = [
        asyncio.create_task(copy(one[0], other[1])),
        asyncio.create_task(copy(other[0], one[1])),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _abort_when_gone(client: asyncio.StreamReader, upstream: asyncio.StreamWriter) -> None:
    """Leave a node's stream when its listener has left."""
    while not client.at_eof():
        await asyncio.sleep(_LISTENER_SECONDS)
    upstream.transport.abort()


@contextmanager
def balancing(*nodes: str, retries: bool = True) -> Iterator[Balancer]:
    """Run a balancer in front of these addresses."""
    balancer = Balancer(nodes, retries=retries)
    thread = threading.Thread(target=balancer.run, name="balancer", daemon=True)
    thread.start()
    try:
        yield balancer
    finally:
        balancer.stop()
        thread.join(SOON_SECONDS)
