"""Listening socket of the SSH gateway; asyncssh is loaded at the first connection."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.logs import get_logger
from hublet.gateway.records import RemoteJobs
from hublet.gateway.ssh.job_attachment import AttachPointFinder
from hublet.jobs.addresses import why_no_ssh

if TYPE_CHECKING:
    from hublet.gateway.ssh.server import SshGateway

log = get_logger("jobs.ssh")


def listen(settings: Settings) -> tuple[socket.socket | None, Settings]:
    """Return the listening socket of the gateway, and the settings with its port.

    None where SSH is off, or where the port is taken: by another process of the same hub, maybe,
    so that is no reason not to start.
    """
    if why_no_ssh(settings) is not None:
        return None, settings
    host, port = settings.server.host, settings.jobs.ssh_port
    try:
        listener = _bind(host, port)
    except (OSError, OverflowError):
        if not settings.server.test_mode:
            return None, settings
        listener = _bind(host, 0)
    jobs = replace(settings.jobs, ssh_port=listener.getsockname()[1])
    return listener, replace(settings, jobs=jobs)


def _bind(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # At once, so that a second process fails to bind.
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


@asynccontextmanager
async def run_gateway(
    database: Database,
    listener: socket.socket | None,
    *,
    find_attach_point: AttachPointFinder,
    remote: RemoteJobs | None = None,
) -> AsyncIterator[None]:
    """Run the gateway during the body; without a listener nothing runs."""
    if listener is None:
        settings = database.hub.settings
        if why_no_ssh(settings) is None:
            log.warning(
                "the port for SSH is taken: nobody comes in here", port=settings.jobs.ssh_port
            )
        yield
        return
    opening = asyncio.create_task(
        _start_gateway(database, listener, find_attach_point, remote), name="ssh-gateway"
    )
    try:
        yield
    finally:
        opening.cancel()
        [gateway] = await asyncio.gather(opening, return_exceptions=True)
        if not isinstance(gateway, BaseException):
            await gateway.stop()
        listener.close()


async def _start_gateway(
    database: Database,
    listener: socket.socket,
    find_attach_point: AttachPointFinder,
    remote: RemoteJobs | None,
) -> "SshGateway":
    """Start the gateway at the first connection: asyncssh takes a quarter of a second to load."""
    await _wait_until_readable(listener)
    try:
        module = await asyncio.to_thread(import_module, "hublet.gateway.ssh.server")
        gateway: SshGateway = module.SshGateway(
            database, find_attach_point=find_attach_point, remote=remote
        )
        await gateway.start(listener)
    except Exception:
        log.exception("nobody comes in by SSH here")
        raise
    return gateway


async def _wait_until_readable(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(listener.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(listener.fileno())
