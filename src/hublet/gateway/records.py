"""Records of the gateway: jobs that are reached, and who may reach them by cookie or SSH key."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """An SSH client that was admitted to a job by a key of its user."""

    holder: KeyHolder
    running: RunningJob
    fingerprint: str
