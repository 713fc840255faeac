"""Records of the gateway: the job that is reached, and who may reach it by cookie or SSH key."""

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import JobRecord


@dataclass(frozen=True, slots=True)
class JobPort:
    """A port of a job, as a host names it."""

    job_id: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachableJob:
    """A job with the attempt that it is at; one that has not begun has no handle."""

    job: JobRecord
    runner: str | None
    handle: str | None

    @property
    def place(self) -> tuple[str, int]:
        return self.job.id, self.job.attempt

    def exposes(self, port: int) -> bool:
        return self.job.expose is not None and port in self.job.expose.ports

    def is_public(self, port: int) -> bool:
        return self.job.expose is not None and port in self.job.expose.public


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserPass:
    """A browser that somebody let in to one port of one job, as long as their session lasts."""

    session_id: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """Whose key it is."""

    user_id: str
    user_name: str
    # In base64, without its type in front.
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that runs, with the attempt it is at."""

    job: JobRecord
    runner: str
    handle: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """Somebody in a job, by one of their keys."""

    holder: KeyHolder
    running: RunningJob
    fingerprint: str
