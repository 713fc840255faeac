"""Records of attempts, of jobs under supervision, and of changes to a job's stage."""

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Flavor, JobRecord
from hublet.jobs.stages import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """Times are microseconds, as the database has them."""

    job_id: str
    number: int
    runner: str
    # Empty: the runner has not taken it over yet.
    handle: str
    # When it got its place; it is being started from then on.
    launched_at: int
    started_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldJob:
    """A job in the hands of one Supervisor, with the attempt that runs or comes next."""

    job: JobRecord
    # None: it has not got its place.
    attempt: AttemptRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that may begin as soon as there is room."""

    job: JobRecord
    # Why it may not begin at all; None: it may.
    obstacle: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """An attempt that has a place: whose it is, and how large."""

    owner_id: str
    flavor: Flavor


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended."""

    # None: nobody has seen it end.
    ended_at: int | None
    exit_code: int | None = None
    reason: str | None = None
    # Whether nothing of it is left to be cleared away, because it never began.
    leaves_nothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChange:
    """What `store.transition` does to a job."""

    trigger: Trigger
    message: str | None
    # Microseconds until it may begin; only where it waits again.
    wait: int = 0
    # Whether whoever has room may take it; a job that is over is always let go of.
    lets_go: bool = False
    started_at: int | None = None
    # Of the attempt that the job is at.
    ending: AttemptEnd | None = None
    # Microseconds that the attempt adds to the time that the job ran.
    ran: int = 0
