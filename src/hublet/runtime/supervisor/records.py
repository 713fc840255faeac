"""Records of attempts and of jobs under supervision."""

from hublet.core.dataclasses import dataclass
from hublet.core.machine import MachineIdentity
from hublet.jobs.records import Flavor, JobRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt of a job; its times are microseconds, as in the database."""

    job_id: str
    number: int
    runner: str
    # What the runner calls it; empty: the runner has not taken it over yet.
    handle: str
    # When it got its capacity; it is being started from then on.
    launched_at: int
    started_at: int | None = None
    # The name of the machine that has it, where that one has another data folder: nobody here can
    # look after the attempt.
    elsewhere: str | None = None
    # Whether the lease of that machine has ended.
    is_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Locality:
    """What a worker can look after: attempts of its own data folder, and those of lost machines."""

    machine: MachineIdentity
    # A machine whose lease ended before this, on the clock of leases, is lost.
    lost_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRoom:
    """What the jobs of a machine share out."""

    jobs: int
    cores: float
    memory_bytes: int
    # Names of the flavors that it offers; none where no runner can be used.
    flavors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldJob:
    """A job that one Supervisor has claimed, with the attempt that runs or comes next."""

    job: JobRecord
    # None: it has no capacity yet.
    attempt: AttemptRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that may begin as soon as there is capacity."""

    job: JobRecord
    # Why it can never begin; None: it can.
    obstacle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """An attempt that occupies capacity: its owner, its size, and the key of its network group."""

    owner_id: str
    flavor: Flavor
    group: str | None = None
    # None: an engine that every machine reaches has it.
    machine_id: str | None = None
