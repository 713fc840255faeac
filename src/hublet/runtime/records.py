"""Interface of a runner: the order for an attempt, what a runner can do, and the protocol."""

import signal
import socket
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from hublet.core.dataclasses import dataclass
from hublet.jobs.records import Observation, Usage
from hublet.runtime.attempt_folder import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A folder or file of this machine, mounted into the attempt."""

    source: Path
    target: str
    read_only: bool
    # What the hub notes of files that the attempt may change; an engine elsewhere keeps it with them.
    snapshot: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembership:
    """The network group of an attempt: attempts with the same key reach each other."""

    key: str
    # Host names by which the other members find it.
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLogin:
    """How an engine logs in to the registry of an image, which is named first in its name."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """Order to start one attempt; idempotent: the same job and number is the same attempt."""

    job_id: str
    number: int
    # For files of this attempt alone.
    folder: Path
    # Its output is appended here; jobs/logs has the format.
    log: Path
    # The name of an image; with content, a folder that runs in the image of spaces.
    image: str
    # Of the image for this machine, if it was pulled; None: the runner knows what the name means.
    image_digest: str | None = None
    # For an engine that pulls an image of this hub.
    image_login: ImageLogin | None = None
    content: Path | None = None
    argv: tuple[str, ...]
    # Whether the image's entrypoint comes before argv, as for a job without a command.
    after_entrypoint: bool = False
    environment: dict[str, str] = field(repr=False)
    cores: float
    memory_bytes: int
    timeout_seconds: int
    # Between SIGTERM and SIGKILL.
    grace_seconds: float
    log_bytes: int
    binds: tuple[BindMount, ...] = ()
    # Of the machine; they have the same names in the job.
    devices: tuple[str, ...] = ()
    # Of a cluster: graphics cards, and labels of the nodes that it may run on.
    gpus: int = 0
    node_labels: tuple[tuple[str, str], ...] = ()
    hostname: str
    group: GroupMembership | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerCapabilities:
    """Whether a runner can be used here, and for what."""

    usable: bool
    # For people: what it is, or why it cannot be used and what to do about that.
    sentence: str
    limits: bool = False
    volumes: bool = False
    network_groups: bool = False
    # For people: why it has no network groups.
    without_groups: str = "Its runner cannot give jobs addresses of their own."
    ssh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPoint:
    """Where to attach to an attempt that runs on this machine, or to connect to its ports."""

    # The init process of the job, or the job itself where it is a plain process. It has the
    # namespaces of the job, and runs exactly as long.
    process: ProcessIdentity
    # User of this machine that the job runs as.
    user: int
    # Folders of its control groups; none where it has no groups.
    groups: tuple[str, ...] = ()
    # Otherwise it shares the ports of this machine with all other jobs.
    has_own_network: bool
    # Its id in the engine, where an engine runs it.
    container: str | None = None


TerminalSize = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    # Columns and rows, then the same in pixels.
    size: TerminalSize
    # As RFC 4254 numbers them.
    modes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRequest:
    """What to run in the job: a program, a shell if argv is empty, or an SFTP server."""

    argv: Sequence[str] = ()
    sftp: bool = False
    # Whether the client sends the target of a symbolic link first, against the draft of SFTP.
    target_first: bool = False
    environment: Mapping[str, str] = field(repr=False)
    terminal: Terminal | None = None


class Attachment(Protocol):
    """A process in the job; closing the attachment kills it and its descendants."""

    # Non-blocking descriptors. With a terminal there is no stderr.
    stdin: int
    stdout: int
    stderr: int | None

    def send(self, number: signal.Signals) -> None: ...

    def resize(self, size: TerminalSize) -> None: ...

    def end_input(self) -> None:
        """Close stdin of the process; only without a terminal."""
        ...

    async def ended(self) -> int:
        """Wait for the end; return the exit status, negative for a signal."""
        ...

    def close(self) -> None: ...

    async def wait_closed(self) -> None:
        """Wait until the clean-up after `close` is done."""
        ...


class RemoteAttachPoint(Protocol):
    """Where to attach to an attempt that an engine runs elsewhere, and that carries every byte."""

    async def dial(self, port: int) -> socket.socket:
        """Return a connected socket that does not block. Raises PortClosed or CannotAttach."""
        ...

    async def find_peers(self, name: str) -> list[str]:
        """Return the members of its network group with a host name, to be dialed."""
        ...

    async def dial_peer(self, peers: Iterable[str], port: int) -> socket.socket:
        """Return a socket to the first of them that listens. Raises PortClosed."""
        ...

    async def attach(self, request: AttachRequest) -> Attachment:
        """Start a process in the attempt. Raises CannotAttach."""
        ...


AnyAttachPoint = AttachPoint | RemoteAttachPoint


class Runner(Protocol):
    """Runs attempts. Every call is idempotent."""

    @property
    def name(self) -> str: ...

    @property
    def is_local(self) -> bool:
        """Tell whether its attempts run on this machine, where alone they can be looked after.

        Otherwise an engine has them that the workers of every machine reach.
        """
        ...

    async def probe(self) -> RunnerCapabilities: ...

    async def launch(self, order: LaunchOrder) -> str:
        """Start an attempt, or find the one that was started; return the runner's handle of it.

        From then on the attempt runs without the hub, keeps its deadline and writes its log.
        Raises CannotRun or CannotRunYet.
        """
        ...

    async def inspect(self, handle: str) -> Observation: ...

    def watch(self) -> AsyncIterator[str]:
        """Yield handles that may have changed: hints only, the caller inspects."""
        ...

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        """Send SIGTERM, and kill everything of it after the grace; returns at once."""
        ...

    async def remove(self, handle: str) -> None:
        """Remove what is left of an attempt that ended."""
        ...

    async def handles(self) -> list[str]:
        """Return the handles of all attempts of this hub that the runner knows."""
        ...

    async def tidy_up(self) -> None:
        """Remove what no attempt needs any more, such as old images; called from time to time."""
        ...

    async def usage(self, handle: str) -> Usage | None: ...

    async def attach_point(self, handle: str) -> AnyAttachPoint | None:
        """Return where to attach to an attempt; None: it does not run, or out of reach."""
        ...
