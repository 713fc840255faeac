"""Attachment of SSH guests to jobs: processes in the job, and names of its network group."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import msgspec

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.gateway.dialer import Dialer
from hublet.gateway.errors import CannotJoinNetwork
from hublet.gateway.namespace_sockets import NamespaceSockets
from hublet.gateway.records import Guest, RemoteJobs, RunningJob, TunnelOrder
from hublet.gateway.ssh.remote_listeners import Listener, LocalListener, RemoteListener
from hublet.gateway.ssh.remote_sessions import RemoteAttachment
from hublet.jobs import hardware, service
from hublet.jobs.records import MAX_VARIABLE_BYTES, JobRecord
from hublet.runtime.attach.attachments import attach, initial_environment
from hublet.runtime.attempt_processes import ATTEMPT_VARIABLE
from hublet.runtime.errors import CannotAttach
from hublet.runtime.networks.name_resolution import addresses_of
from hublet.runtime.records import (
    AnyAttachPoint,
    Attachment,
    AttachPoint,
    AttachRequest,
    Terminal,
)
from hublet.runtime.sandbox import shim_runner
from hublet.runtime.sandbox.bubblewrap import HOME
from hublet.runtime.supervisor.environment import environment_of, group_hostname, group_prefix

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Variables of a client that are passed on; others could only break programs of the job.
_ACCEPTED_VARIABLES = re.compile(r"LANG|LC_[A-Z]+|COLORTERM|TERM|TZ")
# Clients that send the target of a symbolic link first, against the draft of SFTP.
_TARGET_FIRST = ("OpenSSH", "paramiko")

# Lower ports need a capability that no job has.
_FIRST_PORT, _LAST_PORT = 1024, 65535
_LOOPBACK = "127.0.0.1"

# Takes the name of a runner, and its handle of the attempt.
AttachPointFinder = Callable[[str, str], Awaitable[AnyAttachPoint | None]]

_CANNOT_LISTEN = "No port of the job can be listened on there."
ELSEWHERE = (
    "The job is not running on the machine that answers here, or it has just ended: SSH goes "
    "through the hub's process on the machine of the job."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Request of a client: a command, a shell if there is none, or SFTP."""

    command: str | None = None
    sftp: bool = False
    # Version string of the client.
    client: str = ""
    terminal: Terminal | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAttacher:
    """Attaches guests to the jobs of one hub."""

    database: Database
    find_attach_point: AttachPointFinder
    # None: a job of another machine is not reached.
    remote: RemoteJobs | None = None

    async def attach_point(self, running: RunningJob) -> AnyAttachPoint:
        """Return where to attach to a job that this machine reaches. Raises CannotAttach."""
        if self._machine_elsewhere(running) is not None:
            raise CannotAttach(ELSEWHERE)
        found = await self.find_attach_point(running.runner, running.handle)
        if found is None:
            raise CannotAttach(ELSEWHERE)
        return found

    async def addresses(
        self, running: RunningJob, attach_point: AnyAttachPoint, name: str
    ) -> list[str]:
        """Return the addresses of a name in the network group of a job. Raises CannotAttach."""
        data_dir = self.database.hub.settings.database.data_dir
        return await find_group_addresses(running, attach_point, name, data_dir=data_dir)

    async def dial(self, guest: Guest, *, host: str, port: int) -> socket.socket:
        """Connect to a port of the job, or of a host in its network group.

        Raises NothingListens, CannotJoinNetwork and CannotAttach.
        """
        running = guest.running
        if (machine_id := self._machine_elsewhere(running)) is not None:
            return await self._open_remotely(
                machine_id, guest, kind="forward", host=host, port=port
            )
        attach_point = await self.attach_point(running)
        dialer = Dialer()
        try:
            if is_group_name(running.job, host):
                addresses = await self.addresses(running, attach_point, host)
                return await dialer.dial_peer(attach_point, addresses, port)
            return await dialer.dial(attach_point, port)
        finally:
            dialer.close()

    async def listen(self, guest: Guest, port: int) -> Listener:
        """Listen on the job's loopback, at any port for 0. Raises CannotAttach."""
        if port and not _FIRST_PORT <= port <= _LAST_PORT:
            raise CannotAttach(_CANNOT_LISTEN)
        machine_id = self._machine_elsewhere(guest.running)
        try:
            if machine_id is not None:
                made = await self._open_remotely(machine_id, guest, kind="listen", port=port)
                return await RemoteListener.over(made)
            attach_point = await self.attach_point(guest.running)
            if isinstance(attach_point, AttachPoint):
                return LocalListener(await asyncio.to_thread(_bind, attach_point, port))
        except (CannotJoinNetwork, OSError):
            pass
        raise CannotAttach(_CANNOT_LISTEN)

    def _machine_elsewhere(self, running: RunningJob) -> str | None:
        """Return the machine of a job that is not on this one."""
        machine_id = running.machine_id
        is_elsewhere = self.remote is not None and self.remote.is_elsewhere(machine_id)
        return machine_id if is_elsewhere else None

    async def _open_remotely(self, machine_id: str, guest: Guest, **changes: Any) -> socket.socket:
        """Open a tunnel to the machine of the job. Raises CannotAttach."""
        assert self.remote is not None  # noqa: S101 - only who has tunnels finds a job elsewhere.
        order = TunnelOrder(
            job_id=guest.running.job.id,
            attempt=guest.running.job.attempt,
            fingerprint=guest.fingerprint,
            address=guest.address,
            key_data=guest.holder.data,
            **changes,
        )
        try:
            return await self.remote.open(machine_id, order)
        except HubError as error:
            raise CannotAttach(error.message) from None

    async def begin(self, guest: Guest, request: SessionRequest) -> Attachment:
        """Start what a client requested in the job. Raises CannotAttach."""
        if (machine_id := self._machine_elsewhere(guest.running)) is not None:
            session = msgspec.json.encode(request).decode()
            made = await self._open_remotely(machine_id, guest, kind="session", session=session)
            return await RemoteAttachment.over(made, has_terminal=request.terminal is not None)
        attach_point = await self.attach_point(guest.running)
        is_plain = guest.running.runner == shim_runner.NAME
        environment = await self._environment(guest.running, attach_point, is_plain=is_plain)
        environment |= {
            n: v for n, v in request.variables.items() if _ACCEPTED_VARIABLES.fullmatch(n)
        }
        attach_request = AttachRequest(
            argv=() if request.command is None else ("/bin/sh", "-c", request.command),
            sftp=request.sftp,
            target_first=any(name in request.client for name in _TARGET_FIRST),
            environment=environment,
            terminal=request.terminal,
        )
        if not isinstance(attach_point, AttachPoint):
            return await attach_point.attach(attach_request)
        if attach_point.container is not None:
            return await _attach_to_container(attach_point.container, attach_request)
        return await attach(attach_point, attach_request, is_plain=is_plain)

    async def _environment(
        self, running: RunningJob, attach_point: AnyAttachPoint, *, is_plain: bool
    ) -> dict[str, str]:
        if not isinstance(attach_point, AttachPoint) or attach_point.container is not None:
            # The engine sets them itself in every exec.
            return {}
        found = await asyncio.to_thread(initial_environment, attach_point, is_plain=is_plain)
        own = {"HOME": f"{running.handle}/home", ATTEMPT_VARIABLE: running.handle}
        given = own if is_plain else {"HOME": HOME}
        return (
            {"PATH": _PATH}
            | given
            | found
            | await self._job_variables(running)
            | _attempt_variable(given)
        )

    async def _job_variables(self, running: RunningJob) -> dict[str, str]:
        """Return the variables that the hub gave the job, without those that became files."""
        settings = self.database.hub.settings
        size = hardware.offered_flavors(settings).get(running.job.spec.flavor)
        if size is None:
            return {}
        async with self.database.read() as conn:
            secrets = await service.secrets_of(conn, running.job)
        variables = environment_of(running.job, size, secrets=secrets, base_url=settings.base_url)
        return {
            n: v for n, v in variables.items() if len(f"{n}={v}".encode()) <= MAX_VARIABLE_BYTES
        }


def _bind(attach_point: AttachPoint, port: int) -> socket.socket:
    sockets = NamespaceSockets()
    try:
        own = attach_point.has_own_network
        made = sockets.socket_in(attach_point, socket.AF_INET) if own else socket.socket()
    finally:
        sockets.close()
    try:
        made.setblocking(False)
        made.bind((_LOOPBACK, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


def _attempt_variable(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that marks a plain process, which no other source may overwrite."""
    return {name: value for name, value in given.items() if name == ATTEMPT_VARIABLE}


async def _attach_to_container(container: str, attach_request: AttachRequest) -> Attachment:
    # Its library is an extra, and slow to load.
    from hublet.runtime.docker.container_exec import attach_to_container  # noqa: PLC0415 - as above

    return await attach_to_container(container, attach_request)


def is_group_name(job: JobRecord, name: str) -> bool:
    """Tell whether a name may belong to the job's network group."""
    if job.spec.network is None:
        return False
    return name == group_hostname(job) or name.startswith(group_prefix(job))


async def find_group_addresses(
    running: RunningJob, attach_point: AnyAttachPoint, name: str, *, data_dir: Path
) -> list[str]:
    """Resolve a name in the hub's own files, or by the engine; no code of the job is involved."""
    if not isinstance(attach_point, AttachPoint):
        return await attach_point.find_peers(name)
    if attach_point.container is not None:
        # Its library is an extra, and slow to load.
        from hublet.runtime.docker.container_exec import addresses_in_group  # noqa: PLC0415 - as above

        return await addresses_in_group(attach_point.container, name)
    return await asyncio.to_thread(addresses_of, data_dir, Path(running.handle), name)
