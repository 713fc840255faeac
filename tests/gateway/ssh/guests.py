"""A gateway before a job that really runs, and guests who come with their keys."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh
import httpx2

from hublet.accounts.settings import ssh_keys
from hublet.core.database import Database
from hublet.gateway.ssh.server import SshGateway
from hublet.runtime.records import Runner
from hublet.runtime.sandbox.shim_runner import process_runner
from jobs.jobs_api import an_attempt, run, set_row
from people import Headers, a_user
from runtime.attempts import Run, launch

SSH = {"enabled": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    private: asyncssh.SSHKey
    # Of the registered one.
    id: str = ""

    @property
    def fingerprint(self) -> str:
        return self.private.get_fingerprint()


def a_key(kind: str = "ssh-ed25519", **options: Any) -> Key:
    return Key(private=asyncssh.generate_private_key(kind, **options))


async def register(database: Database, name: str, key: Key | None = None) -> Key:
    """Return a key of this user, which is made if need be."""
    key = key or a_key()
    user = await a_user(database, name)
    text = key.private.export_public_key().decode()
    async with database.transaction() as conn:
        kept = await ssh_keys.add(conn, user_id=user.id, title="laptop", text=text)
    return replace(key, id=kept.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHarness:
    """A gateway of a hub, and the runner of its jobs."""

    database: Database
    gateway: SshGateway
    runner: Runner
    data_dir: Path
    port: int

    async def entered(
        self, job_id: str, key: Key | None, **options: Any
    ) -> asyncssh.SSHClientConnection:
        """Connect as a guest; close it at the end."""
        settings: dict[str, Any] = {
            "client_keys": [] if key is None else [key.private],
            "known_hosts": None,
            "agent_path": None,
            "config": None,
            "username": job_id,
        }
        return await asyncssh.connect("127.0.0.1", self.port, **(settings | options))

    @asynccontextmanager
    async def visited(self, job_id: str, key: Key) -> AsyncIterator[asyncssh.SSHClientConnection]:
        conn = await self.entered(job_id, key)
        try:
            yield conn
        finally:
            conn.close()
            await conn.wait_closed()

    async def refusal(self, job_id: str, key: Key | None, **options: Any) -> str:
        """Return how a guest is refused; insist that one is."""
        try:
            conn = await self.entered(job_id, key, **options)
        except asyncssh.Error as error:
            return f"{type(error).__name__}: {error.reason}"
        conn.abort()
        raise AssertionError("It let the guest in.")

    async def output(self, job_id: str, key: Key, command: str, **options: Any) -> str:
        """Return what a command prints that ends well."""
        async with self.visited(job_id, key) as conn:
            ended = await conn.run(command, check=True, **options)
        return str(ended.stdout)

    async def start(self, job_id: str, *argv: str, **changes: Any) -> Run:
        """Let a job of the database run, as a worker would."""
        argv = argv or ("sleep", "60")
        started = await launch(self.runner, self.data_dir, *argv, job_id=job_id, **changes)
        await an_attempt(
            self.database, job_id, runner=self.runner.name, handle=started.handle, started_at=1
        )
        await set_row(self.database, job_id, stage="RUNNING")
        return started

    async def end_all(self) -> None:
        for handle in await self.runner.handles():
            await self.runner.remove(handle)


@asynccontextmanager
async def a_harness(database: Database, runner: Runner | None = None) -> AsyncIterator[SshHarness]:
    data_dir = database.hub.settings.database.data_dir
    used = runner or process_runner(data_dir)

    async def find_attach_point(name: str, handle: str) -> Any:
        return await used.attach_point(handle) if name == used.name else None

    gateway = SshGateway(database, find_attach_point=find_attach_point)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        await gateway.start(listener)
        harness = SshHarness(
            database=database,
            gateway=gateway,
            runner=used,
            data_dir=data_dir,
            port=listener.getsockname()[1],
        )
        try:
            yield harness
        finally:
            await gateway.stop()
            await harness.end_all()


async def a_running_job(
    harness: SshHarness, client: httpx2.AsyncClient, headers: Headers, *argv: str, **body: Any
) -> str:
    """Return the id of a job with SSH that runs; name only what the test is about."""
    fields: dict[str, Any] = {"ssh": SSH} | body
    job = await run(client, headers, **fields)
    await harness.start(job["id"], *argv)
    return str(job["id"])
