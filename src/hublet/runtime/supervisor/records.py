"""Records of attempts and of jobs under supervision."""

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Flavor, JobRecord


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
