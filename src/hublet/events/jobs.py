"""Facts about jobs."""

from hublet.core.light_dataclasses import dataclass
from hublet.core.outbox import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Event):
    """A job is over: COMPLETED, ERROR or CANCELED, with the reason in `message`.

    `name` is its label of that name, if it has one.
    """

    kind = "job.ended"
    job_id: str
    owner_id: str
    creator_id: str
    name: str | None
    stage: str
    message: str | None
