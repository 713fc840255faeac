"""Ports of others in the network group of a job, reached through it."""

import asyncio
from collections.abc import AsyncIterator

import asyncssh
import httpx2
import pytest
from fastapi import FastAPI

from gateway.ssh.guests import SSH, SshHarness, a_harness, register
from gateway.ssh.listening_jobs import listens
from hublet.core.database import Database
from hublet.jobs import store
from hublet.jobs.records import JobRecord
from hublet.runtime.networks.membership import Networks
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.runtime.supervisor.environment import group_hostname, group_of, group_prefix
from jobs.jobs_api import Capable, run
from patience import SOON_SECONDS
from people import Headers, a_user
from runtime.attempts import HOST
from runtime.networks.machines import a_policy, needs_networks

pytestmark = needs_networks

PORT, PYTHON = 8000, "/usr/bin/python3"


@pytest.fixture
async def harness(database: Database, app: FastAPI) -> AsyncIterator[SshHarness]:
    """A gateway before jobs that may be in groups."""
    settings = database.hub.settings
    data_dir = settings.database.data_dir
    networks = Networks(data_dir=data_dir, policy=a_policy())
    runner = sandbox_runner(data_dir, image_map=HOST, network=False, networks=networks)
    app.state.jobs = Capable(settings)
    async with a_harness(database, runner) as harness:
        yield harness


async def a_member(
    harness: SshHarness,
    client: httpx2.AsyncClient,
    headers: Headers,
    *argv: str,
    aliases: list[str],
) -> JobRecord:
    """Return a job of the group that runs."""
    network = {"group": "train", "aliases": aliases}
    created = await run(client, headers, ssh=SSH, network=network)
    owner = await a_user(harness.database, "ada")
    async with harness.database.read() as conn:
        job = await store.find(conn, created["id"], owner_id=owner.id)
    assert job is not None
    await harness.start(job.id, *argv, group=group_of(job))
    return job


async def answer(conn: asyncssh.SSHClientConnection, name: str) -> bytes:
    """Return what is said at a name, as soon as something listens there."""
    while True:
        try:
            reader, writer = await conn.open_connection(name, PORT)
        except asyncssh.ChannelOpenError:
            await asyncio.sleep(0.1)
        else:
            writer.write(b"hello")
            writer.write_eof()
            return await reader.read()


@pytest.fixture
async def guest(
    harness: SshHarness, client: httpx2.AsyncClient, ada: Headers
) -> AsyncIterator[tuple[asyncssh.SSHClientConnection, JobRecord]]:
    """Somebody in a job beside one that listens."""
    serving = listens(PORT, address="0.0.0.0", python=PYTHON)
    await a_member(harness, client, ada, *serving, aliases=["leader"])
    job = await a_member(harness, client, ada, aliases=[])
    async with harness.visited(job.id, await register(harness.database, "ada")) as conn:
        yield conn, job


Guest = tuple[asyncssh.SSHClientConnection, JobRecord]


async def test_another_is_reached_by_every_name(guest: Guest) -> None:
    conn, job = guest

    for name in (f"{group_prefix(job)}leader", group_hostname(job)):
        assert await asyncio.wait_for(answer(conn, name), SOON_SECONDS) == b"you said hello"
    with pytest.raises(asyncssh.ChannelOpenError, match=r"Nothing at .* listens on port 8000\."):
        await conn.open_connection(f"{group_prefix(job)}nobody", PORT)


async def test_a_group_with_many_names_is_no_obstacle(harness: SshHarness, guest: Guest) -> None:
    conn, job = guest
    [names] = (harness.data_dir / "jobs" / "networks").glob("*/hosts")
    with names.open("a") as file:
        file.writelines(f"10.213.0.200 other-{number}\n" for number in range(5000))
    assert names.stat().st_size > 1 << 16

    said = await asyncio.wait_for(answer(conn, f"{group_prefix(job)}leader"), SOON_SECONDS)

    assert said == b"you said hello"
