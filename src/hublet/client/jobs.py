"""Client of the jobs API: jobs, scheduled jobs, and logs that are followed to the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hublet.client.errors import NotReachable, Refused
from hublet.client.events import FIRST_SERVER_ERROR, Event, backoff, pause
from hublet.client.hub import Hub, path_of

# Interface 3: a job that is over stays so.
TERMINAL = frozenset({"COMPLETED", "CANCELED", "ERROR", "DELETED"})
_POLL_SECONDS = 1.0

Job = dict[str, Any]
ScheduledJob = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of a user or of an organization."""

    hub: Hub
    owner: str

    def run(self, body: Mapping[str, object]) -> Job:
        return _as_object(self.hub.post(self._path(), body))

    def list(self, *, stages: Sequence[str] = (), labels: Sequence[str] = ()) -> Iterator[Job]:
        """Yield jobs, newest first, fetched page by page."""
        return self.hub.pages(self._path(), {"stage": list(stages), "label": list(labels)})

    def get(self, job_id: str) -> Job:
        return _as_object(self.hub.get(self._path(job_id)))

    def cancel(self, job_id: str) -> Job:
        return _as_object(self.hub.post(self._path(job_id, "cancel")))

    def rerun(self, job_id: str) -> Job:
        return _as_object(self.hub.post(self._path(job_id, "duplicate")))

    def set_labels(self, job_id: str, labels: Mapping[str, str]) -> Job:
        return _as_object(self.hub.put(self._path(job_id, "labels"), {"labels": dict(labels)}))

    def expose(self, job_id: str, *, ports: Sequence[int], public: Sequence[int]) -> Job:
        body = {"ports": list(ports), "portsPublic": list(public)}
        return _as_object(self.hub.put(self._path(job_id, "expose"), body))

    def delete(self, job_id: str) -> None:
        self.hub.delete(self._path(job_id))

    def metrics(self, job_id: str) -> Iterator[Event]:
        """Yield a measurement each second while the job runs."""
        return self.hub.events(self._path(job_id, "metrics"))

    def logs(
        self, job_id: str, *, tail: int | None = None, follow: bool = False
    ) -> Iterator[Event]:
        """Yield the lines that the job has printed, or only the last of them.

        With `follow` also those that come, until the job is over or the connection is lost.
        """
        query = {"tail": tail, "follow": follow}
        return self.hub.events(self._path(job_id, "logs"), query)

    def _path(self, *parts: str) -> str:
        start = path_of("/api/jobs/{owner}", owner=self.owner)
        return start + "".join(path_of("/{part}", part=part) for part in parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJobs:
    """The scheduled jobs of a user or of an organization."""

    hub: Hub
    owner: str

    def create(self, body: Mapping[str, object]) -> ScheduledJob:
        return _as_object(self.hub.post(self._path(), body))

    def list(self) -> list[ScheduledJob]:
        scheduled: list[ScheduledJob] = self.hub.get(self._path())
        return scheduled

    def get(self, scheduled_job_id: str) -> ScheduledJob:
        return _as_object(self.hub.get(self._path(scheduled_job_id)))

    def suspend(self, scheduled_job_id: str) -> ScheduledJob:
        return _as_object(self.hub.post(self._path(scheduled_job_id, "suspend")))

    def resume(self, scheduled_job_id: str) -> ScheduledJob:
        return _as_object(self.hub.post(self._path(scheduled_job_id, "resume")))

    def reschedule(self, scheduled_job_id: str, schedule: str) -> ScheduledJob:
        body = {"schedule": schedule}
        return _as_object(self.hub.post(self._path(scheduled_job_id, "schedule"), body))

    def trigger(self, scheduled_job_id: str) -> Job:
        return _as_object(self.hub.post(self._path(scheduled_job_id, "run")))

    def delete(self, scheduled_job_id: str) -> None:
        self.hub.delete(self._path(scheduled_job_id))

    def _path(self, *parts: str) -> str:
        start = path_of("/api/scheduled-jobs/{owner}", owner=self.owner)
        return start + "".join(path_of("/{part}", part=part) for part in parts)


def list_hardware(hub: Hub) -> list[dict[str, Any]]:
    flavors: list[dict[str, Any]] = hub.get("/api/jobs/hardware")
    return flavors


def _as_object(response: Any) -> dict[str, Any]:
    fields: dict[str, Any] = response
    return fields


def follow_logs(
    jobs: Jobs, job_id: str, *, tail: int | None = None, on_disconnect: Callable[[str], None]
) -> Iterator[Event]:
    """Yield each line once until the job is over, also across lost connections.

    A failure of the first request is an error, as is a refusal at any time.
    """
    jobs.get(job_id)
    position, waits = _LogPosition(tail), backoff()
    while True:
        try:
            for event in position.unread(jobs.logs(job_id, tail=position.tail, follow=True)):
                waits = backoff()
                yield event
            if jobs.get(job_id)["status"]["stage"] in TERMINAL:
                return
            reason = "the hub ended the stream"
        except (NotReachable, Refused) as error:
            reason = _temporary_reason(error)
        on_disconnect(reason)
        pause(next(waits))


def wait_for_end(jobs: Jobs, job: Job, *, on_disconnect: Callable[[str], None]) -> Job:
    """Return the job once it is over, also across restarts of the hub."""
    waits = backoff()
    while job["status"]["stage"] not in TERMINAL:
        pause(_POLL_SECONDS)
        try:
            job, waits = jobs.get(job["id"]), backoff()
        except (NotReachable, Refused) as error:
            on_disconnect(_temporary_reason(error))
            pause(next(waits))
    return job


def _temporary_reason(error: NotReachable | Refused) -> str:
    """Return the reason of a temporary failure; raise any other."""
    if isinstance(error, NotReachable):
        return error.reason
    if error.status < FIRST_SERVER_ERROR:
        raise error
    return error.sentence


class _LogPosition:
    """Position in a log; every connection sends the log from its start."""

    def __init__(self, tail: int | None) -> None:
        # Requested until the first line has come.
        self.tail = tail
        self._from_start = tail is None
        self._count = 0
        self._last: str | None = None

    def unread(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the lines that were not read yet."""
        for event in self._skip_read(events):
            self._count += 1
            self._last, self.tail = event.data, None
            yield event

    def _skip_read(self, events: Iterator[Event]) -> Iterator[Event]:
        if self._from_start:
            return islice(events, self._count, None)
        if self._last is not None:
            # The number of lines before the tail is unknown, but its last line is known, with its time.
            any(event.data == self._last for event in events)
        return events
