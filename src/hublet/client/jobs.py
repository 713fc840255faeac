"""Jobs and what runs by the clock, as a hub's API gives them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hublet.client.events import Event
from hublet.client.hub import Hub, path_of

# Interface 3: a job that is over stays so.
TERMINAL = frozenset({"COMPLETED", "CANCELED", "ERROR", "DELETED"})

Job = dict[str, Any]
ScheduledJob = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of a user or of an organization."""

    hub: Hub
    owner: str

    def run(self, body: Mapping[str, object]) -> Job:
        return _object(self.hub.post(self._path(), body))

    def list(self, *, stages: Sequence[str] = (), labels: Sequence[str] = ()) -> Iterator[Job]:
        """Yield jobs, newest first, fetching as many as are wanted."""
        return self.hub.pages(self._path(), {"stage": list(stages), "label": list(labels)})

    def get(self, job_id: str) -> Job:
        return _object(self.hub.get(self._path(job_id)))

    def cancel(self, job_id: str) -> Job:
        return _object(self.hub.post(self._path(job_id, "cancel")))

    def rerun(self, job_id: str) -> Job:
        return _object(self.hub.post(self._path(job_id, "duplicate")))

    def set_labels(self, job_id: str, labels: Mapping[str, str]) -> Job:
        return _object(self.hub.put(self._path(job_id, "labels"), {"labels": dict(labels)}))

    def expose(self, job_id: str, *, ports: Sequence[int], public: Sequence[int]) -> Job:
        body = {"ports": list(ports), "portsPublic": list(public)}
        return _object(self.hub.put(self._path(job_id, "expose"), body))

    def delete(self, job_id: str) -> None:
        self.hub.delete(self._path(job_id))

    def metrics(self, job_id: str) -> Iterator[Event]:
        """Yield a measurement each second while the job runs."""
        return self.hub.events(self._path(job_id, "metrics"))

    def logs(
        self, job_id: str, *, tail: int | None = None, follow: bool = False
    ) -> Iterator[Event]:
        """Yield the lines that the job has printed, or only the last of them.

        Who follows gets those that come too, until the job is over or the connection breaks.
        """
        query = {"tail": tail, "follow": follow}
        return self.hub.events(self._path(job_id, "logs"), query)

    def _path(self, *parts: str) -> str:
        start = path_of("/api/jobs/{owner}", owner=self.owner)
        return start + "".join(path_of("/{part}", part=part) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJobs:
    """What a user or an organization has run by the clock."""

    hub: Hub
    owner: str

    def create(self, body: Mapping[str, object]) -> ScheduledJob:
        return _object(self.hub.post(self._path(), body))

    def list(self) -> list[ScheduledJob]:
        found: list[ScheduledJob] = self.hub.get(self._path())
        return found

    def get(self, scheduled_job_id: str) -> ScheduledJob:
        return _object(self.hub.get(self._path(scheduled_job_id)))

    def suspend(self, scheduled_job_id: str) -> ScheduledJob:
        return _object(self.hub.post(self._path(scheduled_job_id, "suspend")))

    def resume(self, scheduled_job_id: str) -> ScheduledJob:
        return _object(self.hub.post(self._path(scheduled_job_id, "resume")))

    def reschedule(self, scheduled_job_id: str, schedule: str) -> ScheduledJob:
        body = {"schedule": schedule}
        return _object(self.hub.post(self._path(scheduled_job_id, "schedule"), body))

    def trigger(self, scheduled_job_id: str) -> Job:
        return _object(self.hub.post(self._path(scheduled_job_id, "run")))

    def delete(self, scheduled_job_id: str) -> None:
        self.hub.delete(self._path(scheduled_job_id))

    def _path(self, *parts: str) -> str:
        start = path_of("/api/scheduled-jobs/{owner}", owner=self.owner)
        return start + "".join(path_of("/{part}", part=part) for part in parts)


def list_hardware(hub: Hub) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hub.get("/api/jobs/hardware")
    return found


def _object(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer
    return found
