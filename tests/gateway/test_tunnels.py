"""Orders between machines: sealed, for one machine, for a while and for one use."""

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest

from hublet.core.database import Database
from hublet.core.leases import lease_clock
from hublet.core.machine import MachineIdentity
from hublet.core.sealing import KeyRing
from hublet.gateway import store, tunnels
from hublet.gateway.errors import MachineAway, TunnelDenied
from hublet.gateway.records import TunnelOrder
from hublet.gateway.tunnels import TunnelMiddleware, Tunnels
from hublet.jobs.records import Usage
from hublet.runtime.records import AttachPoint
from hublet.runtime.supervisor import machines_store
from hublet.runtime.supervisor.records import MachineRoom

ORDER = TunnelOrder(kind="port", job_id="j" * 24, attempt=1, port=80, bearer="hf_secret")
ROOM = MachineRoom(jobs=1, cores=1, memory_bytes=1)


async def nowhere(runner: str, handle: str) -> AttachPoint | None:
    return None


async def unmeasured(runner: str, handle: str) -> Usage | None:
    return None


def a_server(database: Database) -> TunnelMiddleware:
    nothing: Any = None
    return TunnelMiddleware(
        nothing, database, ports=nothing, find_attach_point=nowhere, meter=unmeasured
    )


def sealed_by(client: Tunnels, machine_id: str) -> bytes:
    return client._seal(machine_id, ORDER)  # noqa: SLF001 - what it sends


async def test_an_order_is_opened_once_and_by_its_machine_alone(database: Database) -> None:
    client, server = Tunnels(database), a_server(database)
    body = sealed_by(client, server._machine_id)  # noqa: SLF001 - whom it is for

    assert b"hf_secret" not in body
    assert await server._open(body) == ORDER  # noqa: SLF001 - how a request is read
    for denied in (body, sealed_by(client, "another"), b"", b"x" * 100):
        with pytest.raises(TunnelDenied):
            await server._open(denied)  # noqa: SLF001 - as above


async def test_an_order_is_for_one_process_of_its_machine(database: Database) -> None:
    one, other = a_server(database), a_server(database)
    body = sealed_by(Tunnels(database), one._machine_id)  # noqa: SLF001 - whom it is for

    opened = await asyncio.gather(
        one._open(body),  # noqa: SLF001 - how a request is read
        other._open(body),  # noqa: SLF001 - as above
        return_exceptions=True,
    )

    assert sorted(isinstance(each, TunnelDenied) for each in opened) == [False, True]


async def test_orders_that_are_too_old_in_any_case_are_forgotten(database: Database) -> None:
    async with database.transaction() as conn:
        assert await store.use_order(conn, "old", now=0, until=10)
        assert not await store.use_order(conn, "old", now=5, until=10)
        assert await store.use_order(conn, "new", now=11, until=20)
        rows = await conn.fetch_all("SELECT nonce FROM tunnel_orders")

    assert [row["nonce"] for row in rows] == ["new"]


async def test_an_order_of_a_stranger_or_of_long_ago_is_denied(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, server = Tunnels(database), a_server(database)
    old = sealed_by(client, server._machine_id)  # noqa: SLF001 - whom it is for
    monkeypatch.setattr(tunnels, "lease_clock", lambda: lease_clock() + 61_000_000)
    with pytest.raises(TunnelDenied):
        await server._open(old)  # noqa: SLF001 - how a request is read
    monkeypatch.undo()
    database.hub = replace(database.hub, keys=KeyRing.new())
    forged = sealed_by(Tunnels(database), server._machine_id)  # noqa: SLF001 - as above
    server._database.hub = replace(database.hub, keys=KeyRing.new())  # noqa: SLF001 - its own ring

    with pytest.raises(TunnelDenied):
        await server._open(forged)  # noqa: SLF001 - as above


async def test_a_machine_that_does_not_answer_is_named(database: Database) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        machine = MachineIdentity(id="m", name="attic", folder_id="f")
        async with database.transaction() as conn:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}"
            await machines_store.renew(conn, machine, address=address, room=ROOM, lease=60_000_000)

        with pytest.raises(MachineAway) as away:
            await Tunnels(database).open("m", ORDER)

    assert (away.value.status, away.value.message) == (
        503,
        f"The job {ORDER.job_id} runs on the machine attic, which does not answer: try again.",
    )


async def test_a_machine_whose_lease_has_ended_is_not_even_asked(database: Database) -> None:
    asked = asyncio.Event()
    server = await asyncio.start_server(lambda _reader, _writer: asked.set(), "127.0.0.1", 0)
    machine = MachineIdentity(id="m", name="attic", folder_id="f")
    async with database.transaction() as conn:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await machines_store.renew(conn, machine, address=address, room=ROOM, lease=-1)

    with pytest.raises(MachineAway):
        await Tunnels(database).open("m", ORDER)

    assert not asked.is_set()
    server.close()
