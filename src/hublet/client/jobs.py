"""Client of the jobs API: jobs, scheduled jobs, and logs that are followed to the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hublet.client.errors import NotReachable, Refused
from hublet.client.events import Event
from hublet.client.hub import Hub, path_of
from hublet.client.streaming import backoff, pause

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
        return _as_object(self.hub.post(self._path(), body))

    def list(self, *, stages: Sequence[str] = (), labels: Sequence[str] = ()) -> Iterator[Job]:
        """Yield jobs, newest first, fetching as many as are wanted."""
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
        return _as_object(self.hub.post(self._path(), body))

    def list(self) -> list[ScheduledJob]:
        found: list[ScheduledJob] = self.hub.get(self._path())
        return found

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
    found: list[dict[str, Any]] = hub.get("/api/jobs/hardware")
    return found


def _as_object(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer
    return found


_FIRST_SERVER_ERROR = 500
_POLL_SECONDS = 1.0


def follow_logs(
    jobs: Jobs, job_id: str, *, tail: int | None = None, lost: Callable[[str], None]
) -> Iterator[Event]:
    """Yield each line once until the job is over; `lost` is told why a connection broke.

    A hub that does not answer at first is an error, as is a refusal at any time.
    """
    jobs.get(job_id)
    place, waits = _LogPosition(tail), backoff()
    while True:
        try:
            for event in place.behind(jobs.logs(job_id, tail=place.tail, follow=True)):
                waits = backoff()
                yield event
            if jobs.get(job_id)["status"]["stage"] in TERMINAL:
                return
            reason = "the hub ended the stream"
        except (NotReachable, Refused) as error:
            reason = _temporary_reason(error)
        lost(reason)
        pause(next(waits))


def wait_for_end(jobs: Jobs, job: Job, *, lost: Callable[[str], None]) -> Job:
    """Return the job once it is over; as `follow`, also across restarts of the hub."""
    waits = backoff()
    while job["status"]["stage"] not in TERMINAL:
        pause(_POLL_SECONDS)
        try:
            job, waits = jobs.get(job["id"]), backoff()
        except (NotReachable, Refused) as error:
            lost(_temporary_reason(error))
            pause(next(waits))
    return job


def _temporary_reason(error: NotReachable | Refused) -> str:
    """Return why there is no answer for now; raise what will not go by."""
    if isinstance(error, NotReachable):
        return error.reason
    if error.status < _FIRST_SERVER_ERROR:
        raise error
    return error.sentence


class _LogPosition:
    """How far a log was read. Every connection tells it from the start again."""

    def __init__(self, tail: int | None) -> None:
        # Asked for until the first line has come.
        self.tail = tail
        self._from_start = tail is None
        self._count = 0
        self._last: str | None = None

    def behind(self, told: Iterator[Event]) -> Iterator[Event]:
        """Yield what was not read yet."""
        for event in self._skipped(told):
            self._count += 1
            self._last, self.tail = event.data, None
            yield event

    def _skipped(self, told: Iterator[Event]) -> Iterator[Event]:
        if self._from_start:
            return islice(told, self._count, None)
        if self._last is not None:
            # How many came before the tail is not known, but its last line is, with its time.
            any(event.data == self._last for event in told)
        return told
