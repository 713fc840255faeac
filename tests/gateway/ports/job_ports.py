"""Ports of jobs for tests: a real server in front, and a scripted one where the job would be."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import httpx2
import uvicorn
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from hublet.gateway.ports.authorization import Credentials
from hublet.gateway.ports.upstream import Upstream, connect
from hublet.gateway.records import ReachableJob
from hublet.serving import server_config
from jobs.jobs_api import an_attempt, run, set_row
from patience import SOON_SECONDS
from people import Headers

DOMAIN = "jobs.localhost"

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSE = "Connection: close"

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[int]:
    """Serve a hub on a port of this machine, as `hublet serve` does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        settings = replace(app.state.settings.server, stop_grace_seconds=2)
        server = uvicorn.Server(server_config(with_edge(app), settings))
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.005)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await asyncio.wait_for(running, SOON_SECONDS)
            await app.state.ports.stop()


async def a_running_job(client: httpx2.AsyncClient, database: Database, owner: Headers) -> str:
    """Return a job that exposes 8080 and 9000, the latter for everybody."""
    ports = {"ports": [8080, 9000], "portsPublic": [9000]}
    job = await run(client, owner, expose=ports)
    await an_attempt(database, job["id"], runner="process", handle="somewhere")
    await set_row(database, job["id"], stage="RUNNING", due_at=None)
    job_id: str = job["id"]
    return job_id


@dataclass(slots=True)
class Job:
    """Fake job: runs a script for each connection, and counts connections."""

    script: Script
    connections: int = 0
    heads: list[bytes] = field(default_factory=list)
    _port: int = 0
    _server: asyncio.Server | None = None

    async def connect(self, _found: ReachableJob, _port: int, _of: Credentials) -> Upstream:
        made = socket.socket()
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", self._port))
        return await connect(made)

    def close(self) -> None:
        """As the real cache of routes has it."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def read_head(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        return head

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PortClient:
    """An HTTP client of the port of a job."""

    hub_port: int
    job_id: str
    job: Job
    token: Headers

    def host(self, port: int = 8080) -> str:
        return f"{self.job_id}--{port}.{DOMAIN}:{self.hub_port}"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.hub_port)
        try:
            async with asyncio.timeout(SOON_SECONDS):
                yield reader, writer
        finally:
            writer.close()

    def head(self, line: str, *lines: str, port: int = 8080) -> bytes:
        token = f"Authorization: {self.token['Authorization']}"
        return "\r\n".join([line, f"Host: {self.host(port)}", token, *lines, "", ""]).encode()

    async def raw(self, data: bytes) -> bytes:
        """Send bytes, and return all that comes until the connection is closed."""
        async with self.connected() as (reader, writer):
            writer.write(data)
            return await reader.read()


@asynccontextmanager
async def a_port_client(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    owner: Headers,
    script: Callable[[Job], Script],
) -> AsyncIterator[PortClient]:
    """Yield a client of a job that runs the script."""
    job_id = await a_running_job(client, database, owner)
    job = Job(script=lambda _reader, _writer: asyncio.sleep(0))
    job.script = script(job)
    await job.start()
    app.state.ports._routes = job  # noqa: SLF001 - instead of a real process.
    try:
        async with served(app) as port:
            yield PortClient(hub_port=port, job_id=job_id, job=job, token=owner)
    finally:
        await job.stop()


def responds(*answers: bytes) -> Callable[[Job], Script]:
    """A job that answers each request without a body with the next of these, and goes on."""

    def script_of(job: Job) -> Script:
        left = list(answers)

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while left:
                await job.read_head(reader)
                writer.write(left.pop(0))
            await reader.read()

        return script

    return script_of


async def _echo(job: Job, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await job.read_head(reader)
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    body = b""
    if b"content-length" in fields:
        body = await reader.readexactly(int(fields[b"content-length"]))
    elif b"transfer-encoding" in fields:
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def echo(job: Job) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await _echo(job, reader, writer)

    return script
