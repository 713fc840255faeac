"""Where the gateway listens, and that nothing is loaded before somebody comes."""

import asyncio
import socket
from dataclasses import replace

import asyncssh

from hublet.core import metadata
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.gateway.ssh.listener import listen, run_gateway
from hublet.runtime.records import AttachPoint


def with_port(settings: Settings, port: int, *, test_mode: bool = False) -> Settings:
    return replace(
        settings,
        jobs=replace(settings.jobs, ssh_port=port),
        server=replace(settings.server, host="127.0.0.1", test_mode=test_mode),
    )


def test_a_hub_that_wants_no_ssh_listens_nowhere() -> None:
    settings = with_port(Settings(), 0)

    assert listen(settings) == (None, settings)


def test_test_mode_takes_any_free_port_and_says_which() -> None:
    listener, settings = listen(with_port(Settings(), 0, test_mode=True))

    assert listener is not None
    assert settings.jobs.ssh_port == listener.getsockname()[1] != 0
    listener.close()


def test_a_port_of_somebody_else_is_no_reason_not_to_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = with_port(Settings(), port)
        assert listen(taken) == (None, taken)

        listener, settings = listen(with_port(Settings(), port, test_mode=True))

    assert listener is not None
    assert settings.jobs.ssh_port not in {0, port}
    listener.close()


async def nowhere(runner: str, handle: str) -> AttachPoint | None:
    return None


async def test_the_first_guest_opens_the_gateway(database: Database) -> None:
    settings = database.hub.settings
    listener, with_ssh = listen(with_port(settings, 0, test_mode=True))
    port = with_ssh.jobs.ssh_port
    async with run_gateway(database, listener, find_attach_point=nowhere):
        await asyncio.sleep(0.1)
        async with database.read() as conn:
            assert await metadata.find(conn, "ssh_host_key") is None

        keys = [
            await asyncssh.get_server_host_key("127.0.0.1", port, config=None) for _ in range(2)
        ]

    assert [key is not None and key.get_algorithm() for key in keys] == ["ssh-ed25519"] * 2
    with socket.socket() as made:
        assert made.connect_ex(("127.0.0.1", port)) != 0


async def test_a_hub_that_nobody_enters_stops_as_well(database: Database) -> None:
    listener, settings = listen(with_port(database.hub.settings, 0, test_mode=True))
    async with run_gateway(database, listener, find_attach_point=nowhere):
        pass

    with socket.socket() as made:
        assert made.connect_ex(("127.0.0.1", settings.jobs.ssh_port)) != 0
