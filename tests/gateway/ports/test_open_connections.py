"""What is open to a job closes when whoever opened it may not any more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import httpx2
import pytest
from fastapi import FastAPI

from gateway.ports.job_ports import Job, PortClient, Script, a_port_client
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database, open_database
from hublet.gateway.ports import open_connections
from hublet.gateway.ports.authorization import Credentials
from hublet.gateway.ports.upstream import Upstream
from hublet.gateway.records import ReachableJob
from hublet.tokens import service as tokens
from jobs.jobs_api import set_row
from patience import SOON_SECONDS
from people import Headers, a_user, an_organization, sign_in

SWITCH = ("GET /socket HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade")
STREAM = ("GET /stream HTTP/1.1",)

Change = Callable[[Database, PortClient], Awaitable[None]]


def endless(job: Job) -> Script:
    """A job that agrees to whatever it is asked for, and never ends."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await job.read_head(reader)
        if b"upgrade" in head:
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n")
        await reader.read()

    return script


@pytest.fixture
async def port(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> AsyncIterator[PortClient]:
    async with a_port_client(app, client, database, ada, endless) as port:
        yield port


@dataclass(frozen=True, slots=True)
class Line:
    """An open connection through the hub."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def is_closed(self, *, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                while await self.reader.read(100):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        finally:
            self.writer.close()
        return True


async def opened(port: PortClient, head: bytes) -> Line:
    line = Line(*await asyncio.open_connection("127.0.0.1", port.hub_port))
    line.writer.write(head)
    said = await line.reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in said or b" 101 " in said
    return line


async def wait_for_end(*lines: Line) -> None:
    assert all([await line.is_closed(within=SOON_SECONDS) for line in lines])


async def assert_open(line: Line) -> None:
    assert not await line.is_closed(within=1)


async def revoke_the_token(database: Database, port: PortClient) -> None:
    value = port.token["Authorization"].removeprefix("Bearer ")
    async with database.transaction() as conn:
        await tokens.revoke_by_value(conn, value, reason="It leaked.")


async def disable_the_user(database: Database, _port: PortClient) -> None:
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)


async def end_the_job(database: Database, port: PortClient) -> None:
    await set_row(database, port.job_id, stage="COMPLETED")


async def begin_another_attempt(database: Database, port: PortClient) -> None:
    await set_row(database, port.job_id, attempt=2)


@pytest.mark.parametrize(
    "change", [revoke_the_token, disable_the_user, end_the_job, begin_another_attempt]
)
async def test_streams_and_sockets_close_when_somebody(
    port: PortClient, database: Database, change: Change
) -> None:
    stream, socket = await opened(port, port.head(*STREAM)), await opened(port, port.head(*SWITCH))

    await change(database, port)

    await wait_for_end(stream, socket)


async def test_ports_that_are_not_exposed_any_more_close_at_once(
    port: PortClient, client: httpx2.AsyncClient, ada: Headers
) -> None:
    closed = [await opened(port, port.head(*STREAM)), await opened(port, port.head(*SWITCH))]
    kept = await opened(port, port.head(*STREAM, port=9000))

    path = f"/api/jobs/ada/{port.job_id}/expose"
    await client.put(path, headers=ada, json={"ports": [9000], "portsPublic": [9000]})

    async with httpx2.AsyncClient() as visitor:
        address = f"http://127.0.0.1:{port.hub_port}/"
        answer = await visitor.get(address, headers={"Host": port.host(), **ada})
    assert answer.status_code == 404
    await wait_for_end(*closed)
    await assert_open(kept)


async def test_a_port_that_is_not_public_any_more_closes_for_strangers_only(
    port: PortClient, client: httpx2.AsyncClient, ada: Headers
) -> None:
    owner = await opened(port, port.head(*STREAM, port=9000))
    stranger = await opened(port, f"GET / HTTP/1.1\r\nHost: {port.host(9000)}\r\n\r\n".encode())

    path = f"/api/jobs/ada/{port.job_id}/expose"
    await client.put(path, headers=ada, json={"ports": [9000]})

    await wait_for_end(stranger)
    await assert_open(owner)


async def test_who_is_removed_from_the_organization_is_out(
    port: PortClient, database: Database
) -> None:
    members = {"eve": Role.admin, "max": Role.read}
    engines = await an_organization(database, "engines", members=members)
    eve, member = await sign_in(database, "eve"), await sign_in(database, "max")
    await set_row(database, port.job_id, owner_id=engines.id)
    streams = {}
    for name, headers in (("eve", eve), ("max", member)):
        port.token.clear()
        port.token.update(headers)
        streams[name] = await opened(port, port.head(*STREAM))

    async with database.transaction() as conn:
        user = await accounts.get_user(conn, "max")
        await organizations.remove_member(conn, OPERATOR, engines, user)

    await wait_for_end(streams["max"])
    await assert_open(streams["eve"])


async def test_another_process_of_the_hub_is_heard(port: PortClient, database: Database) -> None:
    stream = await opened(port, port.head(*STREAM))

    async with open_database(database.hub) as other:
        await revoke_the_token(other, port)

    await wait_for_end(stream)


async def test_what_is_idle_for_an_hour_is_closed(
    port: PortClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_connections.IDLE_SECONDS == 3600
    stream, socket = await opened(port, port.head(*STREAM)), await opened(port, port.head(*SWITCH))

    monkeypatch.setattr(open_connections, "IDLE_SECONDS", 0.5)

    await wait_for_end(stream, socket)


async def test_a_hub_that_stops_waits_for_nobody(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with a_port_client(app, client, database, ada, endless) as port:
        stream = await opened(port, port.head(*STREAM))
        socket = await opened(port, port.head(*SWITCH))

    await wait_for_end(socket, stream)


def slow_job(job: Job) -> Script:
    """A job that answers the first request, and never the second."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await job.read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await job.read_head(reader)
        await reader.read()

    return script


async def request_twice(port: PortClient) -> Line:
    """Return a connection on which the second request waits, at a connection that was kept."""
    line = await opened(port, port.head("GET /a HTTP/1.1"))
    await line.reader.readexactly(2)
    line.writer.write(port.head("GET /b HTTP/1.1"))
    async with asyncio.timeout(SOON_SECONDS):
        while len(port.job.heads) < 2:
            await asyncio.sleep(0.01)
    return line


async def test_who_may_not_any_more_is_not_asked_for_once_again(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with a_port_client(app, client, database, ada, slow_job) as port:
        line = await request_twice(port)

        await revoke_the_token(database, port)

        async with asyncio.timeout(SOON_SECONDS):
            assert (await line.reader.readline()).startswith(b"HTTP/1.1 502 ")
        line.writer.close()
        assert (len(port.job.heads), port.job.connections) == (2, 1)


async def test_who_has_left_is_not_asked_for_once_again(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with a_port_client(app, client, database, ada, slow_job) as port:
        line = await request_twice(port)

        line.writer.close()

        async with asyncio.timeout(SOON_SECONDS):
            while app.state.ports._open_connections._connections:  # noqa: SLF001 - what is open.
                await asyncio.sleep(0.01)
        assert (len(port.job.heads), port.job.connections) == (2, 1)


async def test_what_is_closed_on_the_way_to_the_job_does_not_arrive(
    port: PortClient, app: FastAPI, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = Job.connect

    async def slowly(
        job: Job, found: ReachableJob, number: int, credentials: Credentials
    ) -> Upstream:
        await revoke_the_token(database, port)
        (end,) = app.state.ports._open_connections._connections  # noqa: SLF001 - what is open.
        async with asyncio.timeout(SOON_SECONDS):
            while not end.is_closed:
                await asyncio.sleep(0.01)
        return await connect(job, found, number, credentials)

    monkeypatch.setattr(Job, "connect", slowly)
    answer = await port.raw(port.head("GET / HTTP/1.1", "Connection: close"))

    assert answer.startswith(b"HTTP/1.1 502 ")
    assert port.job.heads == []
