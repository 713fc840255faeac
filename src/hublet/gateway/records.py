"""Records of the gateway: jobs that are reached, and who may reach them by cookie or SSH key."""

import socket
from dataclasses import field
from typing import Literal, Protocol

from hublet.core.dataclasses import dataclass
from hublet.jobs.records import JobRecord


@dataclass(frozen=True, slots=True)
class JobPort:
    """A port of a job, as a host names it."""

    job_id: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableJob:
    """A job with its current attempt; one that has not started has no handle."""

    job: JobRecord
    runner: str | None
    handle: str | None
    # Of its attempt; None: every machine reaches it, or it has not started.
    machine_id: str | None = None

    @property
    def attempt_key(self) -> tuple[str, int]:
        return self.job.id, self.job.attempt

    def exposes(self, port: int) -> bool:
        return self.job.expose is not None and port in self.job.expose.ports

    def is_public(self, port: int) -> bool:
        return self.job.expose is not None and port in self.job.expose.public


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserPass:
    """Access of a browser to one port of one job, as long as its session of the hub lasts."""

    session_id: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """The user that an SSH key belongs to."""

    user_id: str
    user_name: str
    # In base64, without its type in front.
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that runs, with its current attempt."""

    job: JobRecord
    runner: str
    handle: str
    machine_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """An SSH client that was admitted to a job by a key of its user."""

    holder: KeyHolder
    running: RunningJob
    fingerprint: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelOrder:
    """What one machine of the hub asks another for, on behalf of a client with these credentials."""

    # `usage` is told without credentials: the machine that asks has checked, and sends on, numbers.
    kind: Literal["port", "forward", "listen", "session", "usage"]
    job_id: str
    attempt: int
    # Of a port, of a host that is forwarded to over SSH, and of one that is listened on in the job.
    port: int = 0
    host: str = ""
    # Of a client of a port.
    bearer: str | None = field(default=None, repr=False)
    cookie: str | None = field(default=None, repr=False)
    # Of an SSH client: its key, and what it wants to run.
    fingerprint: str = ""
    key_data: str = ""
    # Of either: the client's address.
    address: str = ""
    # As JSON.
    session: str = field(default="", repr=False)


class RemoteJobs(Protocol):
    """Ways into jobs of other machines."""

    def is_elsewhere(self, machine_id: str | None) -> bool:
        """Tell whether an attempt is on another machine than this one."""
        ...

    async def open(self, machine_id: str, order: TunnelOrder) -> socket.socket:
        """Return a socket that leads to what was ordered. Raises HubError."""
        ...
