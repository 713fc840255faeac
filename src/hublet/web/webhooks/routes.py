"""HTTP for the pages of webhooks, of people and of organizations alike."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Response

from hublet.core.database import Connection
from hublet.core.errors import InvalidRequest
from hublet.core.pages import plural
from hublet.login.auth import FormFields
from hublet.login.browser import safe_path
from hublet.web.live import LiveContent, LiveKind, live_stream
from hublet.web.pages import REFUSALS, go_to, read_as
from hublet.web.webhook_forms import (
    WEBHOOK_REFUSALS,
    WebhookFields,
    fields_of,
    read_changes,
    read_new,
    typed_fields,
)
from hublet.web.webhooks.auth import (
    FreshWebhookVisit,
    OwnerVisit,
    WebhookPageRouter,
    WebhookVisit,
)
from hublet.web.webhooks.pages import (
    DeliveryQuery,
    read_moment,
    show_delivery,
    show_form,
    show_list,
    show_samples,
    show_webhook,
)
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import service as activity
from hublet.webhooks.activity.records import SendResult
from hublet.webhooks.activity.statistics_store import list_owner_versions, list_versions
from hublet.webhooks.records import ATTEMPTS_CHANNEL, WebhookAccess
from hublet.webhooks.schemas import UpdateWebhook

router = WebhookPageRouter()

_WEBHOOK = "/{webhook_id}"
_Text = Annotated[str, Query(max_length=300)]
_Version = Annotated[int, Query(ge=0)]

# Also what was paused or added shows, within seconds: most of it ends with an attempt.
WEBHOOKS = LiveKind(channel=ATTEMPTS_CHANNEL, read_versions=list_versions)
OWNERS = LiveKind(channel=ATTEMPTS_CHANNEL, read_versions=list_owner_versions)


async def _query(
    state: _Text = "", event: _Text = "", repo: _Text = "", since: _Text = "", until: _Text = ""
) -> DeliveryQuery:
    return DeliveryQuery(state=state, event=event, repo=repo.strip(), since=since, until=until)


@router.get("")
async def get_webhooks_page(owner: WebhookVisit) -> Response:
    return await show_list(owner)


# Typed texts are lost on the way to the login, so these two ask for it first.
@router.get("/new")
async def get_new_webhook_page(owner: FreshWebhookVisit, watch: str = "") -> Response:
    return await show_form(owner, WebhookFields(watched=(watch,) if watch else ()))


@router.get(f"{_WEBHOOK}/edit")
async def get_webhook_form(owner: FreshWebhookVisit, webhook_id: str) -> Response:
    async with owner.visit.database.read() as conn:
        webhook = await webhooks.get(conn, await owner.get_access(conn), webhook_id)
    return await show_form(owner, fields_of(webhook), webhook=webhook)


@router.get("/events")
async def follow_webhooks(owner: WebhookVisit, since: _Version = 0) -> Response:
    """Follow the list: the page asks for what it shows when this says that it has changed."""
    async with owner.visit.database.read() as conn:
        access = await owner.get_access(conn)
    content = LiveContent(kind=OWNERS, key=access.owner.id, since=since)
    return live_stream(owner.visit, content, partial(_check_access, owner))


@router.get(_WEBHOOK)
async def get_webhook_page(
    owner: WebhookVisit,
    webhook_id: str,
    query: Annotated[DeliveryQuery, Depends(_query)],
    cursor: _Text = "",
) -> Response:
    return await show_webhook(owner, webhook_id, query=query, cursor=cursor)


@router.get(f"{_WEBHOOK}/events")
async def follow_webhook(owner: WebhookVisit, webhook_id: str, since: _Version = 0) -> Response:
    """Follow a webhook and its deliveries."""
    await _check_access(owner, webhook_id)
    content = LiveContent(kind=WEBHOOKS, key=webhook_id, since=since)
    return live_stream(owner.visit, content, partial(_check_access, owner, webhook_id))


async def _check_access(owner: OwnerVisit, webhook_id: str | None = None) -> None:
    async with owner.visit.database.read() as conn:
        access = await owner.get_access(conn)
        if webhook_id is not None:
            await webhooks.get(conn, access, webhook_id)


@router.get(f"{_WEBHOOK}/samples")
async def get_webhook_samples(owner: WebhookVisit, webhook_id: str) -> Response:
    return await show_samples(owner, webhook_id)


@router.get(f"{_WEBHOOK}/deliveries/{{delivery_id}}")
async def get_delivery_page(owner: WebhookVisit, webhook_id: str, delivery_id: str) -> Response:
    return await show_delivery(owner, webhook_id, delivery_id)


@router.post("/new")
async def create_webhook(owner: FreshWebhookVisit, form: FormFields) -> Response:
    owner.check(form)
    secret = None
    try:
        async with owner.visit.database.transaction() as conn:
            access = await owner.get_access(conn)
            webhook = await webhooks.create(conn, access, read_new(form))
            if "generate" in form:
                secret = await webhooks.rotate_secret(conn, access, webhook.id)
    except WEBHOOK_REFUSALS as error:
        return await show_form(owner, typed_fields(form), problem=error)
    if secret is not None:
        return await show_webhook(owner, webhook.id, secret=secret)
    return go_to(owner.visit, f"{owner.path}/{webhook.id}", toast="The webhook is there.")


@router.post(f"{_WEBHOOK}/edit")
async def update_webhook(owner: FreshWebhookVisit, webhook_id: str, form: FormFields) -> Response:
    """Change target, watched things and domains: another target gets the secret from now on."""
    owner.check(form)
    async with owner.visit.database.read() as conn:
        webhook = await webhooks.get(conn, await owner.get_access(conn), webhook_id)
    try:
        async with owner.visit.database.transaction() as conn:
            access = await owner.get_access(conn)
            await webhooks.update(conn, access, webhook_id, read_changes(form))
    except WEBHOOK_REFUSALS as error:
        return await show_form(owner, typed_fields(form), webhook=webhook, problem=error)
    return go_to(owner.visit, f"{owner.path}/{webhook_id}", toast="The webhook is saved.")


@router.post(f"{_WEBHOOK}/enable")
async def enable_webhook(owner: WebhookVisit, webhook_id: str, form: FormFields) -> Response:
    return await _change(owner, webhook_id, form, webhooks.enable, toast="The webhook is active.")


@router.post(f"{_WEBHOOK}/disable")
async def disable_webhook(owner: WebhookVisit, webhook_id: str, form: FormFields) -> Response:
    return await _change(owner, webhook_id, form, webhooks.disable, toast="The webhook is paused.")


@router.post(f"{_WEBHOOK}/delete")
async def delete_webhook(owner: FreshWebhookVisit, webhook_id: str, form: FormFields) -> Response:
    return await _change(
        owner,
        webhook_id,
        form,
        webhooks.delete,
        toast="The webhook is deleted.",
        leads_to=owner.path,
    )


async def _change(
    owner: OwnerVisit,
    webhook_id: str,
    form: FormFields,
    change: Callable[[Connection, WebhookAccess, str], Awaitable[Any]],
    *,
    toast: str,
    leads_to: str | None = None,
) -> Response:
    """Change a webhook, and go back to the page that `next` names, which may be another one's."""
    owner.check(form)
    async with owner.visit.database.transaction() as conn:
        await change(conn, await owner.get_access(conn), webhook_id)
    path = leads_to or f"{owner.path}/{webhook_id}"
    return go_to(owner.visit, safe_path(form.get("next") or path), toast=toast)


@router.post(f"{_WEBHOOK}/secret")
async def rotate_webhook_secret(
    owner: FreshWebhookVisit, webhook_id: str, form: FormFields
) -> Response:
    """Set a secret, one that the hub makes and shows this once, or none; the old one signs along."""
    owner.check(form)
    secret, how = None, form.get("how", "generate")
    try:
        async with owner.visit.database.transaction() as conn:
            access = await owner.get_access(conn)
            if how == "generate":
                secret = await webhooks.rotate_secret(conn, access, webhook_id)
            else:
                chosen = "" if how == "remove" else _chosen_secret(form)
                request = read_as(UpdateWebhook, secret=chosen)
                await webhooks.update(conn, access, webhook_id, request)
    except REFUSALS as error:
        return await show_webhook(owner, webhook_id, problem=error)
    if secret is not None:
        return await show_webhook(owner, webhook_id, secret=secret)
    toast = "The webhook has no secret any more." if how == "remove" else "The secret is saved."
    return go_to(owner.visit, f"{owner.path}/{webhook_id}", toast=toast)


def _chosen_secret(form: FormFields) -> str:
    if secret := form.get("secret", ""):
        return secret
    raise InvalidRequest("secret must not be empty; choose “none” to have none.")


@router.post(f"{_WEBHOOK}/ping")
async def ping_webhook(owner: WebhookVisit, webhook_id: str, form: FormFields) -> Response:
    """Send a ping, and show what became of it."""
    owner.check(form)
    async with owner.visit.database.read() as conn:
        access = await owner.get_access(conn)
    try:
        result = await activity.ping(owner.visit.database, access, webhook_id)
    except REFUSALS as error:
        return await show_webhook(owner, webhook_id, problem=error)
    return _go_to_result(owner, webhook_id, result)


@router.post(f"{_WEBHOOK}/deliveries/{{delivery_id}}/replay")
async def replay_webhook_delivery(
    owner: WebhookVisit, webhook_id: str, delivery_id: str, form: FormFields
) -> Response:
    """Send a delivery again, also one that arrived, and show what became of it."""
    owner.check(form)
    async with owner.visit.database.read() as conn:
        access = await owner.get_access(conn)
    try:
        result = await activity.replay(owner.visit.database, access, webhook_id, delivery_id)
    except REFUSALS as error:
        return await show_delivery(owner, webhook_id, delivery_id, problem=error)
    return _go_to_result(owner, webhook_id, result)


def _go_to_result(owner: OwnerVisit, webhook_id: str, result: SendResult) -> Response:
    if result.status is not None:
        toast = f"The target answered with {result.status}."
    elif result.job_id is not None:
        toast = "The job is started."
    elif result.reason == "waiting":
        toast = "It is sent as soon as its turn comes."
    else:
        toast = f"No answer came: {result.reason}."
    path = f"{owner.path}/{webhook_id}/deliveries/{result.delivery_id}"
    return go_to(owner.visit, path, toast=toast)


@router.post(f"{_WEBHOOK}/replay")
async def replay_webhook_deliveries(
    owner: WebhookVisit, webhook_id: str, form: FormFields
) -> Response:
    """Send the deliveries again that were chosen in the list."""

    async def replay(conn: Connection, access: WebhookAccess) -> int:
        if not (chosen := form.getlist("delivery")):
            raise InvalidRequest("delivery: choose at least one.")
        return await activity.replay_some(conn, access, webhook_id, chosen)

    return await _resend(owner, webhook_id, form, replay)


@router.post(f"{_WEBHOOK}/recover")
async def recover_webhook(owner: WebhookVisit, webhook_id: str, form: FormFields) -> Response:
    """Send again what failed or was not sent since a time; with `enable`, resume it before."""

    async def recover(conn: Connection, access: WebhookAccess) -> int:
        since = read_moment("since", form.get("since", ""))
        if "enable" in form:
            await webhooks.enable(conn, access, webhook_id)
        return await activity.recover(conn, access, webhook_id, since=since, until=None)

    return await _resend(owner, webhook_id, form, recover)


async def _resend(
    owner: OwnerVisit,
    webhook_id: str,
    form: FormFields,
    resend: Callable[[Connection, WebhookAccess], Awaitable[int]],
) -> Response:
    """Send deliveries again, and go back to the log as it was narrowed."""
    owner.check(form)
    try:
        async with owner.visit.database.transaction() as conn:
            count = await resend(conn, await owner.get_access(conn))
    except REFUSALS as error:
        return await show_webhook(owner, webhook_id, problem=error)
    toast = f"{plural(count, 'delivery', 'deliveries')} sent again."
    path = f"{owner.path}/{webhook_id}"
    return go_to(owner.visit, safe_path(form.get("next") or path), toast=toast)
