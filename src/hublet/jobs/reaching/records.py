"""What is reached, and who is let in."""

from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Job


@dataclass(frozen=True, slots=True)
class Target:
    """A port of a job, as a host names it."""

    job_id: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """A job with the attempt that it is at; one that has not begun has no handle."""

    job: Job
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
class Pass:
    """A browser that somebody let in to one port of one job, as long as their session lasts."""

    session_id: str
    user_id: str
