"""Interface of a runner: the order for an attempt, what a runner can do, and the protocol."""

from collections.abc import AsyncIterator
from dataclasses import field
from pathlib import Path
from typing import Protocol

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Observation, Usage
from hublet.runtime.attempt_folder import ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A folder of this machine that the attempt sees at another place."""

    source: Path
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembership:
    """The network group of an attempt: whose have the same key can reach each other."""

    key: str
    # By which the others find it.
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """One attempt. The same job and number is the same attempt, however often it is ordered."""

    job_id: str
    number: int
    # Where the attempt may keep its own things; nobody else uses this folder.
    folder: Path
    # Everything it prints is added here: see jobs/logs for the form.
    log: Path
    # The name of an image, or a folder of content that is run in the image of spaces.
    image: str
    content: Path | None = None
    argv: tuple[str, ...]
    # Whether the image's own entrypoint comes before argv, as for a job without a command.
    after_entrypoint: bool = False
    environment: dict[str, str] = field(repr=False)
    cores: float
    memory_bytes: int
    timeout_seconds: int
    # Between the polite request to end and the end.
    grace_seconds: float
    log_bytes: int
    binds: tuple[BindMount, ...] = ()
    # Of the machine, under the same names for the job.
    devices: tuple[str, ...] = ()
    hostname: str
    group: GroupMembership | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerCapabilities:
    """Whether a runner can be used here, and for what."""

    usable: bool
    # In words: what it is, or why it cannot be used and what to do about that.
    sentence: str
    limits: bool = False
    volumes: bool = False
    network_groups: bool = False
    # Why it has none, in words.
    without_groups: str = "Its runner cannot give jobs addresses of their own."
    ssh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachPoint:
    """A way into an attempt that runs on this machine, for those who reach or enter it."""

    # What the job sees as its first process, or the job itself where it is a plain one. All of
    # its namespaces are those of the job, and it lives exactly as long.
    process: ProcessIdentity
    # Of this machine: as whom the job runs.
    user: int
    # Its control groups, as folders; none where limits are not kept by groups.
    groups: tuple[str, ...] = ()
    # Otherwise its ports are those of this machine, and so are everybody's.
    has_own_network: bool
    # What the engine calls it, where one runs it.
    container: str | None = None


class Runner(Protocol):
    """Everything may be asked again: what was done already is not done twice."""

    name: str

    async def probe(self) -> RunnerCapabilities: ...

    async def launch(self, order: LaunchOrder) -> str:
        """Begin an attempt, or find it; return what the runner calls it.

        Raises CannotRun or CannotRunYet. Returns when the attempt was taken over: from then on it
        goes on without the hub, keeps its deadline and writes its log.
        """
        ...

    async def inspect(self, handle: str) -> Observation: ...

    def watch(self) -> AsyncIterator[str]:
        """Yield handles that may have changed: hints only, the caller inspects."""
        ...

    async def stop(self, handle: str, *, grace_seconds: float) -> None:
        """Ask it to end, and end everything of it after the grace; returns at once."""
        ...

    async def remove(self, handle: str) -> None:
        """Clear away what is left of an attempt that ended."""
        ...

    async def handles(self) -> list[str]:
        """Return every attempt of this hub that the runner has anything of."""
        ...

    async def tidy_up(self) -> None:
        """Clear away what no attempt needs any more, such as old images; asked for now and then."""
        ...

    async def usage(self, handle: str) -> Usage | None: ...

    async def inside(self, handle: str) -> AttachPoint | None:
        """Return the way into an attempt; None: it does not run, or not on this machine."""
        ...
