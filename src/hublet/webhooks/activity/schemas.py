"""Schemas of deliveries, replays, recoveries and pings."""

from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import MISSING, Field

from hublet.core.clock import from_micros
from hublet.core.schema import Moment, ObjectId, Schema, Timestamp
from hublet.repos.schemas import RepoTypeName
from hublet.webhooks.activity import records
from hublet.webhooks.delivery.signing import headers_of
from hublet.webhooks.records import Attempt, WebhookRecord
from hublet.webhooks.triggers.payload import render_body

StateName = Literal["pending", "delivered", "failed", "unsent"]

# Replaces a value that is secret.
_HIDDEN_VALUE = "(set)"


class WebhookActivity(Schema):
    """What a webhook does, beyond its record and its deliveries."""

    secretNames: Annotated[
        list[str], Field(description="The secrets that its jobs get; their values are never shown.")
    ]
    runsAs: Annotated[
        str | MISSING, Field(description="The user in whose name its jobs are started.")
    ] = MISSING
    triggers: Annotated[int, Field(description="Those that count for the daily limit so far.")]
    dailyLimit: Annotated[int | MISSING, Field(description="Absent when there is none.")] = MISSING
    throttled: Annotated[
        bool, Field(description="The daily limit is reached: what comes now is kept, not sent.")
    ]

    @classmethod
    def of(cls, activity: records.ActivitySummary) -> Self:
        return cls.model_validate(
            {
                "secretNames": list(activity.secret_names),
                "runsAs": _or_missing(activity.runs_as),
                "triggers": activity.triggers,
                "dailyLimit": _or_missing(activity.daily_limit),
                "throttled": activity.is_throttled,
            }
        )


class DeliveryRepo(Schema):
    """A repository as it was called when something happened to it."""

    type: RepoTypeName
    name: str


class DeliveryEvent(Schema):
    """What happened."""

    id: ObjectId
    scope: str
    action: str
    repo: DeliveryRepo
    createdAt: Timestamp

    @classmethod
    def of(cls, event: records.EventSummary) -> Self:
        return cls(
            id=event.id,
            scope=event.scope,
            action=event.action,
            repo=DeliveryRepo.model_validate({"type": event.repo_type, "name": event.repo_name}),
            createdAt=from_micros(event.created_at),
        )


class Delivery(Schema):
    """What became of one event at one webhook."""

    id: ObjectId
    state: StateName
    # Why it was not sent, or why the last attempt failed.
    reason: str | MISSING = MISSING
    # Absent when the webhook's owner could not see the repository: the reason is no-access.
    event: DeliveryEvent | MISSING = MISSING
    # How many attempts were made, replays included.
    attempts: int
    # The last answer, if any came.
    status: int | MISSING = MISSING
    # Whether somebody asked for it to see whether the target answers.
    ping: bool | MISSING = MISSING
    createdAt: Timestamp
    nextAttemptAt: Timestamp | MISSING = MISSING
    finishedAt: Timestamp | MISSING = MISSING

    @classmethod
    def of(cls, delivery: records.DeliverySummary) -> Self:
        return cls.model_validate(_render_delivery(delivery))


class Durations(Schema):
    """How long the phases took, in milliseconds; a kept connection spares the first three."""

    dns: float | MISSING = MISSING
    connect: float | MISSING = MISSING
    tls: float | MISSING = MISSING
    firstByte: float | MISSING = MISSING
    total: float


class DeliveryAttempt(Schema):
    """One try to deliver."""

    number: int
    startedAt: Timestamp
    # Where it went; absent when a job was started.
    target: str | MISSING = MISSING
    jobId: str | MISSING = MISSING
    status: int | MISSING = MISSING
    reason: str | MISSING = MISSING
    detail: str | MISSING = MISSING
    durations: Durations
    # The beginning of the answer's body, as far as it is text.
    response: str
    responseHeaders: Annotated[
        dict[str, str] | MISSING,
        Field(
            description="Those of the answer that help to understand it; absent when it has none."
        ),
    ] = MISSING

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        return cls.model_validate(
            {
                "number": attempt.number,
                "startedAt": from_micros(attempt.started_at),
                "target": _or_missing(attempt.target),
                "jobId": _or_missing(attempt.job_id),
                "status": _or_missing(attempt.status),
                "reason": _or_missing(attempt.reason),
                "detail": _or_missing(attempt.detail),
                "durations": {
                    "dns": _milliseconds(attempt.dns_micros),
                    "connect": _milliseconds(attempt.connect_micros),
                    "tls": _milliseconds(attempt.tls_micros),
                    "firstByte": _milliseconds(attempt.first_byte_micros),
                    "total": _milliseconds(attempt.total_micros),
                },
                "response": response_text(attempt),
                "responseHeaders": dict(attempt.response_headers) or MISSING,
            }
        )


SentPayload = Annotated[dict[str, Any], Field(description="The body as it is sent, version 3.")]


class FullDelivery(Delivery):
    """A delivery with what is sent, and every attempt."""

    payload: SentPayload | MISSING = MISSING
    headers: Annotated[
        dict[str, str],
        Field(description="As they are sent; of what is secret only that it is there."),
    ]
    attemptLog: list[DeliveryAttempt]

    @classmethod
    def of_webhook(cls, delivery: records.DeliveryDetails, webhook: WebhookRecord) -> Self:
        return cls.model_validate(
            _render_delivery(delivery.summary)
            | {
                "payload": _render_payload(delivery.payload, webhook.id),
                "headers": _render_headers(delivery, webhook),
                "attemptLog": [DeliveryAttempt.of(attempt) for attempt in delivery.attempts],
            }
        )


class StreamedDelivery(Delivery):
    """A delivery as it comes or changes, with what is sent and the last attempt."""

    payload: SentPayload | MISSING = MISSING
    lastAttempt: DeliveryAttempt | MISSING = MISSING

    @classmethod
    def of_update(cls, update: records.DeliveryUpdate, *, webhook_id: str) -> Self:
        last = update.last_attempt
        return cls.model_validate(
            _render_delivery(update.summary)
            | {
                "payload": _render_payload(update.payload, webhook_id),
                "lastAttempt": MISSING if last is None else DeliveryAttempt.of(last),
            }
        )


def _render_delivery(delivery: records.DeliverySummary) -> dict[str, Any]:
    finished = delivery.finished_at
    return {
        "id": delivery.id,
        "state": "pending" if delivery.is_pending else delivery.state,
        "reason": _or_missing(delivery.reason),
        "event": MISSING if delivery.event is None else DeliveryEvent.of(delivery.event),
        "attempts": delivery.attempts,
        "status": _or_missing(delivery.status),
        "ping": delivery.ping or MISSING,
        "createdAt": from_micros(delivery.created_at),
        "nextAttemptAt": from_micros(delivery.due_at) if delivery.is_pending else MISSING,
        "finishedAt": MISSING if finished is None else from_micros(finished),
    }


def _render_headers(delivery: records.DeliveryDetails, webhook: WebhookRecord) -> dict[str, str]:
    """Render the headers of the last attempt, or what is known of those of the first."""
    last = delivery.attempts[-1] if delivery.attempts else None
    return render_attempt_headers(delivery.summary.id, last, webhook)


def render_attempt_headers(
    delivery_id: str, attempt: Attempt | None, webhook: WebhookRecord
) -> dict[str, str]:
    """Render the headers of an attempt, or of the first one to come; what is secret stays inside."""
    if webhook.url is None:
        # A job is started; nothing is posted.
        return {}
    headers = headers_of(
        b"",
        delivery_id=delivery_id,
        timestamp=attempt.started_at // 1_000_000 if attempt else 0,
        attempt=attempt.number if attempt else 1,
        secret=_HIDDEN_VALUE if webhook.has_secret else None,
        keys=(),
    )
    if webhook.has_secret:
        headers["webhook-signature"] = _HIDDEN_VALUE
    if attempt is None:
        del headers["webhook-timestamp"]
    return headers


def _render_payload(payload: bytes | None, webhook_id: str) -> Any:
    if payload is None:
        return MISSING
    # No schema accepts the NUL character in a dict, but the payload is shown as it was sent.
    return MappingProxyType(msgspec.json.decode(render_body(payload, webhook_id)))


def _or_missing(value: Any) -> Any:
    return MISSING if value is None else value


def _milliseconds(micros: int | None) -> Any:
    return MISSING if micros is None else micros / 1000


def response_text(attempt: Attempt) -> str:
    """Return the beginning of a response's body as text, whatever it is."""
    return attempt.response.decode(errors="replace").replace("\x00", "")


class Recover(Schema):
    since: Moment
    # The present moment unless given.
    until: Moment | MISSING = MISSING


class Recovered(Schema):
    """How many deliveries are sent again."""

    count: int


class Sent(Schema):
    """What came of the attempt."""

    deliveryId: ObjectId
    status: Annotated[int, Field(description="The status of the answer; 0 when none came.")]
    reason: Annotated[
        str | MISSING,
        Field(
            description="Why no answer came, or why it counts as a failure. `waiting`: the attempt "
            "was not made yet; the list of deliveries will tell what came of it."
        ),
    ] = MISSING
    jobId: Annotated[str | MISSING, Field(description="The job that was started.")] = MISSING

    @classmethod
    def of(cls, outcome: records.SendResult) -> Self:
        return cls.model_validate(
            {
                "deliveryId": outcome.delivery_id,
                "status": outcome.status or 0,
                "reason": outcome.reason or MISSING,
                "jobId": outcome.job_id or MISSING,
            }
        )
