"""Following what a job prints to its end, also across restarts of the hub."""

from collections.abc import Callable, Iterator
from itertools import islice

from hublet.client.errors import NotReachable, Refused
from hublet.client.events import Event
from hublet.client.jobs import TERMINAL, Job, Jobs
from hublet.client.waiting import growing, pause

_FIRST_FAULT_OF_THE_HUB = 500
_LOOK_SECONDS = 1.0


def follow(
    jobs: Jobs, job_id: str, *, tail: int | None = None, lost: Callable[[str], None]
) -> Iterator[Event]:
    """Yield each line once until the job is over; `lost` is told why a connection broke.

    A hub that does not answer at first is an error, as is a refusal at any time.
    """
    jobs.get(job_id)
    place, waits = _Place(tail), growing()
    while True:
        try:
            for event in place.behind(jobs.logs(job_id, tail=place.tail, follow=True)):
                waits = growing()
                yield event
            if jobs.get(job_id)["status"]["stage"] in TERMINAL:
                return
            reason = "the hub ended the stream"
        except (NotReachable, Refused) as error:
            reason = _reason(error)
        lost(reason)
        pause(next(waits))


def wait(jobs: Jobs, job: Job, *, lost: Callable[[str], None]) -> Job:
    """Return the job once it is over; as `follow`, also across restarts of the hub."""
    waits = growing()
    while job["status"]["stage"] not in TERMINAL:
        pause(_LOOK_SECONDS)
        try:
            job, waits = jobs.get(job["id"]), growing()
        except (NotReachable, Refused) as error:
            lost(_reason(error))
            pause(next(waits))
    return job


def _reason(error: NotReachable | Refused) -> str:
    """Return why there is no answer for now; raise what will not go by."""
    if isinstance(error, NotReachable):
        return error.reason
    if error.status < _FIRST_FAULT_OF_THE_HUB:
        raise error
    return error.sentence


class _Place:
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
