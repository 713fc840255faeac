"""Events of jobs and webhooks."""

from hublet.core.dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFailing(Event):
    """Deliveries of a webhook keep failing.

    `percent` is how far it is on the way to its suspension: 0 when it began, then 50 and 90.
    """

    kind = "webhook.failing"
    webhook_id: str
    owner_id: str
    creator_id: str
    percent: int
    # The last answer, or why none came.
    status: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSuspended(Event):
    """Deliveries of a webhook failed until it was switched off; what it matches is still kept."""

    kind = "webhook.suspended"
    webhook_id: str
    owner_id: str
    creator_id: str
    status: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookThrottled(Event):
    """A webhook had as many deliveries in 24 hours as the hub allows; the rest is only kept."""

    kind = "webhook.throttled"
    webhook_id: str
    owner_id: str
    creator_id: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRecovered(Event):
    """A failing webhook's target answers again."""

    kind = "webhook.recovered"
    webhook_id: str
    owner_id: str
    creator_id: str
