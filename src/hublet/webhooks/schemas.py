"""Schemas of webhooks: requests to create and update them, and the response."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, AfterValidator, BeforeValidator, Field, WithJsonSchema

from hublet.accounts.avatars import avatar_url
from hublet.core.clock import wire
from hublet.core.outgoing.urls import MAX_URL
from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.jobs.request_schemas import ImageJob, JobRequest, Secrets, SpaceJob, WebhookJob
from hublet.webhooks import records
from hublet.webhooks.records import Domain, WatchedType, WebhookState

MAX_WATCHED = 1000
# It is sent in a header.
MAX_SECRET = 256

_JOB_FIELDS = (SpaceJob.model_fields.keys() | ImageJob.model_fields.keys()) - {"secrets"}
_DISABLED = {
    WebhookState.enabled: False,
    WebhookState.disabled: True,
    WebhookState.suspended: WebhookState.suspended.value,
}


def _check_printable(text: str) -> str:
    # Interface 4.3: printable, 0x20 to 0x7F. The last of these is a control character, and the
    # secret is sent in a header, which may hold none (RFC 9110, 5.5).
    if "\x7f" in text:
        raise ValueError(
            "it must not have the character 0x7F (DEL): it is not printable, and no HTTP header can hold it"
        )
    if not all(" " <= character <= "~" for character in text):
        raise ValueError("it must have only printable ASCII characters, 0x20 to 0x7E")
    return text


# The description has the shape; `core.outgoing` has the rules and their error messages.
Url = Annotated[
    str, WithJsonSchema({"type": "string", "format": "uri", "maxLength": MAX_URL, "minLength": 1})
]
Secret = Annotated[
    str,
    Field(max_length=MAX_SECRET, json_schema_extra={"pattern": r"^[\x20-\x7E]*$"}),
    AfterValidator(_check_printable),
]
# Client contract 1.2: an older client can only send the plural.
RequestedDomain = Annotated[
    Domain, BeforeValidator(lambda value: "discussion" if value == "discussions" else value)
]
Domains = Annotated[list[RequestedDomain], Field(min_length=1, max_length=16)]


class WatchedRequest(Schema):
    type: WatchedType
    # As in `ada/engine`, or `ada` alone for a user or an organization.
    name: Annotated[str, Field(min_length=1, max_length=256)]


class _WebhookRequest(Schema):
    url: Url | MISSING = MISSING
    job: JobRequest | MISSING = MISSING
    jobSourceId: ObjectId | MISSING = MISSING
    # For the job that starts from jobSourceId; an empty value removes one.
    secrets: Annotated[Secrets | MISSING, Field(repr=False)] = MISSING
    # An empty one removes the secret.
    secret: Annotated[Secret | MISSING, Field(repr=False)] = MISSING


class CreateWebhook(_WebhookRequest):
    watched: Annotated[list[WatchedRequest], Field(min_length=1, max_length=MAX_WATCHED)]
    domains: Domains


class UpdateWebhook(_WebhookRequest):
    """What is to change; a field that is left out keeps its value."""

    # Client contract 1.2: the clients always send it; an empty one changes nothing.
    watched: Annotated[list[WatchedRequest], Field(max_length=MAX_WATCHED)] = Field(default=[])
    domains: Domains | MISSING = MISSING


class Watched(Schema):
    name: str
    type: WatchedType
    # The avatar of the account, or of the repository's owner; absent when it does not exist.
    avatarUrl: str | MISSING = MISSING


class Webhook(Schema):
    id: ObjectId
    url: Annotated[str, Field(json_schema_extra={"format": "uri"})] | MISSING = MISSING
    job: WebhookJob | MISSING = MISSING
    jobSourceId: str | MISSING = MISSING
    disabled: bool | Literal["suspended-after-failure"]
    watched: list[Watched]
    hasSecret: bool
    domains: list[Domain]
    lastTriggerAt: Timestamp | MISSING = MISSING


class WebhookEnvelope(Schema):
    webhook: Webhook

    @classmethod
    def of(cls, webhook: records.WebhookRecord, *, base_url: str) -> Self:
        return cls.model_validate({"webhook": render_webhook(webhook, base_url=base_url)})


def render_webhook(webhook: records.WebhookRecord, *, base_url: str) -> dict[str, Any]:
    """Return a webhook as `Webhook` describes it; its secrets stay inside."""
    rendered: dict[str, Any] = {"id": webhook.id}
    if webhook.url is not None:
        rendered["url"] = webhook.url
    if webhook.job is not None:
        rendered["job"] = _render_job(webhook.job, webhook.secret_names)
    if webhook.job_source_id is not None:
        rendered["jobSourceId"] = webhook.job_source_id
    rendered |= {
        "disabled": _DISABLED[webhook.state],
        "watched": [_render_watched(each, base_url) for each in webhook.watched],
        "hasSecret": webhook.has_secret,
        "domains": list(webhook.domains),
    }
    if webhook.last_trigger_at is not None:
        rendered["lastTriggerAt"] = wire(webhook.last_trigger_at)
    return rendered


def _render_job(job: dict[str, Any], secret_names: tuple[str, ...]) -> dict[str, Any]:
    # Interface 2.3: these fields and no others; the rest is kept for the job alone.
    rendered = {name: value for name, value in job.items() if name in _JOB_FIELDS}
    return rendered | {"secrets": list(secret_names)} if secret_names else rendered


def _render_watched(watched: records.WatchedItem, base_url: str) -> dict[str, Any]:
    rendered: dict[str, Any] = {"name": watched.name, "type": watched.type}
    if watched.account_id is not None:
        rendered["avatarUrl"] = avatar_url(base_url, watched.account_id)
    return rendered
