"""Attachment of SSH guests to jobs: processes inside, and peers in the network group."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path

from hublet.core.database import Database
from hublet.core.light_dataclasses import dataclass
from hublet.gateway.namespace_sockets import NamespaceSockets
from hublet.gateway.records import Guest, RunningJob
from hublet.jobs import hardware, service
from hublet.jobs.records import MAX_VARIABLE_BYTES, JobRecord
from hublet.runtime.attach.attachments import (
    Attachment,
    AttachRequest,
    Terminal,
    attach,
    initial_environment,
)
from hublet.runtime.attempt_processes import ATTEMPT_VARIABLE
from hublet.runtime.errors import CannotAttach
from hublet.runtime.networks.name_resolution import addresses_of
from hublet.runtime.records import AttachPoint
from hublet.runtime.sandbox import process_runner
from hublet.runtime.sandbox.bubblewrap import HOME
from hublet.runtime.supervisor.environment import environment_of, group_hostname, group_prefix

_CONNECT_SECONDS = 10.0


def is_group_name(job: JobRecord, name: str) -> bool:
    """Tell whether a name can be one of the job's network group."""
    if job.spec.network is None:
        return False
    return name == group_hostname(job) or name.startswith(group_prefix(job))


async def find_group_addresses(
    running: RunningJob, inside: AttachPoint, name: str, *, data_dir: Path
) -> list[str]:
    """Look a name up where the hub, or its engine, keeps it: the job is not asked for anything."""
    if inside.container is not None:
        # Its library is an extra, and costs a while to load.
        from hublet.runtime.docker.networks import addresses_in_group  # noqa: PLC0415 - as above

        return await addresses_in_group(inside.container, name)
    return await asyncio.to_thread(addresses_of, data_dir, Path(running.handle), name)


async def connect_to_group(
    inside: AttachPoint, addresses: list[str], port: int
) -> socket.socket | None:
    """Return a socket to the first who answers, made in the job's own network."""
    doors = NamespaceSockets()
    try:
        for address in addresses:
            made = await asyncio.to_thread(doors.socket_in, inside, socket.AF_INET)
            if await _try_connect(made, (address, port)):
                return made
        return None
    finally:
        doors.close()


async def _try_connect(made: socket.socket, address: tuple[str, int]) -> bool:
    """Connect, or close it."""
    made.setblocking(False)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(made, address)
    except OSError:  # A timeout is one, too.
        made.close()
        return False
    except BaseException:
        made.close()
        raise
    return True


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of what a client sends along; the rest could only surprise the programs of the job.
_ACCEPTED_VARIABLES = re.compile(r"LANG|LC_[A-Z]+|COLORTERM|TERM|TZ")
# Clients that name links the other way round than the draft of SFTP.
_TARGET_FIRST = ("OpenSSH", "paramiko")

# Takes the name of a runner and what that calls the attempt.
AttachPointFinder = Callable[[str, str], Awaitable[AttachPoint | None]]

ELSEWHERE = (
    "The job is not running on the machine that answers here, or it has just ended: SSH goes "
    "through the hub's process on the machine of the job."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """What a client wants: a command, or without one a shell; or files."""

    command: str | None = None
    sftp: bool = False
    # What the client calls itself.
    client: str = ""
    terminal: Terminal | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAttacher:
    """Opens the jobs of one hub to those who were let in."""

    database: Database
    way: AttachPointFinder

    async def inside(self, running: RunningJob) -> AttachPoint:
        found = await self.way(running.runner, running.handle)
        if found is None:
            raise CannotAttach(ELSEWHERE)
        return found

    async def addresses(self, running: RunningJob, inside: AttachPoint, name: str) -> list[str]:
        """Return who has a name in the network group of a job. Raises CannotAttach."""
        data_dir = self.database.hub.settings.database.data_dir
        return await find_group_addresses(running, inside, name, data_dir=data_dir)

    async def begin(self, guest: Guest, asked: SessionRequest) -> Attachment:
        """Start what is asked for. Raises CannotAttach."""
        inside = await self.inside(guest.running)
        is_plain = guest.running.runner == process_runner.NAME
        environment = await self._environment(guest.running, inside, is_plain=is_plain)
        environment |= {
            n: v for n, v in asked.variables.items() if _ACCEPTED_VARIABLES.fullmatch(n)
        }
        wish = AttachRequest(
            argv=() if asked.command is None else ("/bin/sh", "-c", asked.command),
            sftp=asked.sftp,
            target_first=any(name in asked.client for name in _TARGET_FIRST),
            environment=environment,
            terminal=asked.terminal,
        )
        if inside.container is not None:
            return await _attach_to_container(inside.container, wish)
        return await attach(inside, wish, is_plain=is_plain)

    async def _environment(
        self, running: RunningJob, inside: AttachPoint, *, is_plain: bool
    ) -> dict[str, str]:
        found = await asyncio.to_thread(initial_environment, inside, is_plain=is_plain)
        own = {"HOME": f"{running.handle}/home", ATTEMPT_VARIABLE: running.handle}
        given = own if is_plain else {"HOME": HOME}
        if inside.container is not None:
            # The engine knows them, and tells them to everybody whom it lets in.
            return {}
        return (
            {"PATH": _PATH} | given | found | await self._said(running) | _attempt_variable(given)
        )

    async def _said(self, running: RunningJob) -> dict[str, str]:
        """Return what the hub itself told the job; what is too long for a variable is a file."""
        settings = self.database.hub.settings
        size = hardware.offered_flavors(settings).get(running.job.spec.flavor)
        if size is None:
            return {}
        async with self.database.read() as conn:
            secrets = await service.secrets_of(conn, running.job)
        said = environment_of(running.job, size, secrets=secrets, base_url=settings.base_url)
        return {n: v for n, v in said.items() if len(f"{n}={v}".encode()) <= MAX_VARIABLE_BYTES}


def _attempt_variable(given: Mapping[str, str]) -> dict[str, str]:
    """Return what tells whose a plain process is, which nothing may overwrite."""
    return {name: value for name, value in given.items() if name == ATTEMPT_VARIABLE}


async def _attach_to_container(container: str, wish: AttachRequest) -> Attachment:
    # Its library is an extra, and costs a while to load.
    from hublet.runtime.docker.container_exec import attach_to_container  # noqa: PLC0415 - as above

    return await attach_to_container(container, wish)
