"""Records of jobs: the spec, the stage, what a runner observes and measures (interface 2.2)."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from hublet.core.dataclasses import dataclass
from hublet.tokens.delegations import Delegation

# The channel that wakes followers of jobs.
JOBS = "jobs"
# The channel that wakes supervisors: a job may be claimed now, or is to be canceled.
DUE_JOBS = "jobs-due"
# The channel that wakes followers when the store has more of a log.
JOB_LOGS = "job-logs"
# Linux passes no longer string to a program, and ends each with a zero byte.
MAX_VARIABLE_BYTES = 131_071


class Flavor(StrEnum):
    """The hardware of a job, in the order of the interface."""

    cpu_basic = "cpu-basic"
    cpu_upgrade = "cpu-upgrade"
    cpu_performance = "cpu-performance"
    cpu_xl = "cpu-xl"
    sprx8 = "sprx8"
    zero_a10g = "zero-a10g"
    t4_small = "t4-small"
    t4_medium = "t4-medium"
    l4x1 = "l4x1"
    l4x4 = "l4x4"
    l40sx1 = "l40sx1"
    l40sx4 = "l40sx4"
    l40sx8 = "l40sx8"
    a10g_small = "a10g-small"
    a10g_large = "a10g-large"
    a10g_largex2 = "a10g-largex2"
    a10g_largex4 = "a10g-largex4"
    a100_large = "a100-large"
    a100x4 = "a100x4"
    a100x8 = "a100x8"
    h200 = "h200"
    h200x2 = "h200x2"
    h200x4 = "h200x4"
    h200x8 = "h200x8"
    rtx_pro_6000 = "rtx-pro-6000"
    rtx_pro_6000x2 = "rtx-pro-6000x2"
    rtx_pro_6000x4 = "rtx-pro-6000x4"
    rtx_pro_6000x8 = "rtx-pro-6000x8"
    inf2x6 = "inf2x6"


class Arch(StrEnum):
    amd64 = "amd64"
    arm64 = "arm64"


class VolumeType(StrEnum):
    bucket = "bucket"
    model = "model"
    dataset = "dataset"
    space = "space"


class Stage(StrEnum):
    scheduling = "SCHEDULING"
    running = "RUNNING"
    completed = "COMPLETED"
    error = "ERROR"
    canceled = "CANCELED"
    deleted = "DELETED"

    @property
    def is_terminal(self) -> bool:
        return self not in {Stage.scheduling, Stage.running}


class InitiatorType(StrEnum):
    user = "user"
    scheduled_job = "scheduled-job"
    duplicated_job = "duplicated-job"
    webhook = "webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Initiator:
    """What started the job."""

    type: InitiatorType
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume of a job: its source, and where it is mounted."""

    type: VolumeType
    source: str
    mount_path: str
    # As requested, and the commit that it was then; buckets have neither.
    revision: str | None = None
    commit: str | None = None
    read_only: bool | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports that can be reached from outside; the public ones without a token."""

    ports: tuple[int, ...]
    public: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkGroup:
    group: str
    aliases: tuple[str, ...] = ()


def network_group_key(
    network: NetworkGroup | None, owner_id: str, resource_group_id: str | None
) -> str | None:
    # Interface 2.2: the same name means another group for another owner or resource group.
    return None if network is None else f"{owner_id}/{resource_group_id or ''}/{network.group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a job runs: exactly one of a space and an image. Secrets are stored apart, sealed."""

    space: str | None = None
    image: str | None = None
    command: tuple[str, ...] | None = None
    arguments: tuple[str, ...] | None = None
    environment: dict[str, str]
    flavor: Flavor
    arch: Arch | None = None
    # Of one attempt; None: the default of the settings.
    timeout_seconds: int | None = None
    attempts: int = 1
    mounts: tuple[Mount, ...] = ()
    ssh: bool = False
    network: NetworkGroup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    id: str
    owner_id: str
    creator_id: str
    # With which of the creator's rights it runs.
    delegation: Delegation
    resource_group_id: str | None = None
    initiator: Initiator
    spec: Spec
    labels: dict[str, str]
    expose: Ports | None = None
    secret_names: tuple[str, ...] = ()
    stage: Stage
    message: str | None = None
    cancel_reason: str | None = None
    failure_count: int = 0
    version: int = 1
    attempt: int = 1
    cancel_requested_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    running_micros: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Jobs of an owner in any of these stages, with all of these labels."""

    owner_id: str
    user_id: str
    # False: only jobs without a resource group, and those in the user's own groups.
    sees_every_group: bool
    stages: tuple[Stage, ...]
    # Each as in `name=value`.
    labels: frozenset[str] = frozenset()
    # None: whatever started them.
    initiator: Initiator | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """What a response says of a job beyond its record."""

    creator_name: str
    # Of the attempt that runs or ran last.
    attempt_started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEvent:
    """A stage and message that a job had, and when."""

    id: str
    stage: Stage
    message: str | None
    attempt: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """An attempt as the owner of its job knows it."""

    number: int
    launched_at: datetime
    # None: it has not begun, or its end was not observed.
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """What happened to a job, oldest first."""

    attempts: tuple[PastAttempt, ...]
    events: tuple[StageEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAttempt:
    """The stage of a job, and the attempt to measure."""

    job_id: str
    stage: Stage
    flavor: Flavor
    attempt: int
    # None: no attempt runs right now.
    runner: str | None = None
    handle: str | None = None
    # None: every machine reaches it.
    machine_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """What the shared store has of the log of one attempt."""

    job_id: str
    attempt: int
    size: int = 0
    lines: int = 0
    # Where each object ends; it begins where the one before it ends.
    ends: tuple[int, ...] = ()
    # The number of lines before the end of each whole block.
    block_lines: tuple[int, ...] = ()
    # In microseconds; None: more may come.
    ended_at: int | None = None
    # A line after the last one that says what is missing.
    notice: str | None = None
    # The name of the object with the kept usage.
    usage: str | None = None


class Phase(StrEnum):
    """Phase of an attempt, as its runner observes it."""

    pending = "pending"
    running = "running"
    # It ended, and everything it printed is in the log.
    exited = "exited"
    # Nothing of it is left, and it is unknown how it ended.
    gone = "gone"
    # The runner cannot tell right now.
    unknown = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a runner observes of an attempt."""

    phase: Phase
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    timed_out: bool = False
    stopped: bool = False
    # More on it, such as why it could not begin.
    reason: str | None = None
    # Whether it waits for volumes that this machine has not got: they are prepared again.
    lacks_volumes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an attempt uses right now."""

    cpu_millicores: int
    memory_bytes: int
    # Read and written.
    disk_per_second: int = 0
    received_per_second: int = 0
    sent_per_second: int = 0
    # Of its graphics cards together; None: it has none, or its runner cannot tell.
    gpu_percent: int | None = None


# Measures an attempt, wherever it runs; None: nobody can tell right now.
Meter = Callable[[MeasuredAttempt], Awaitable[Usage | None]]


class Availability(Protocol):
    """What can run jobs on this hub; implemented by the runtime."""

    async def check(self, image: str | None, *, is_in_group: bool) -> None:
        """Refuse a job that nothing here would run; without an image it runs a space.

        Raises NoRunner, NoNetworkGroups and ImageNotFound.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyJobUsage:
    """The jobs of an owner that began on one day, which is counted from 1970."""

    day: int
    jobs: int
    failed: int
    running_seconds: float
