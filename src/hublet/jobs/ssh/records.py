"""Who came in by SSH."""

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """Whose key it is."""

    user_id: str
    user_name: str
    # In base64, without its type in front.
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job that runs, with the attempt it is at."""

    job: Job
    runner: str
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """Somebody in a job, by one of their keys."""

    holder: KeyHolder
    running: Running
    fingerprint: str
