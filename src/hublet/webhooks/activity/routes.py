"""Routes of the delivery log: list, stream, show, replay, recover, ping."""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import MISSING
from starlette.responses import Response

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.core.clock import to_micros
from hublet.core.database import Database
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.http.event_streams import EVENT_STREAM_RESPONSES, EventStream, LastEventId
from hublet.core.http.exchange import exchange_of
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Moment
from hublet.tokens.auth import caller_of
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import service, store
from hublet.webhooks.activity.records import DeliveryFilter, states_named
from hublet.webhooks.activity.schemas import (
    Delivery,
    FullDelivery,
    Recover,
    Recovered,
    Sent,
    StateName,
    WebhookActivity,
)
from hublet.webhooks.activity.stream import listen
from hublet.webhooks.auth import OWN_WEBHOOKS, WebhookId, WebhookOwner, mirror_for_organizations
from hublet.webhooks.errors import InvalidPeriod
from hublet.webhooks.records import WebhookAccess

_REPO = r"^[^/]+/[^/]+$"


async def _parse_filter(
    state: Annotated[StateName | None, Query(description="Those that stand so.")] = None,
    reason: Annotated[str, Query(description="Those with this reason, as in `throttled`.")] = "",
    scope: Annotated[str, Query(description="Of this scope, as in `repo.content`.")] = "",
    repo: Annotated[
        str | None,
        Query(pattern=_REPO, description="About the repository that was called owner/name then."),
    ] = None,
    since: Annotated[Moment | None, Query(description="From this moment on.")] = None,
    until: Annotated[Moment | None, Query(description="Before this moment.")] = None,
) -> DeliveryFilter:
    everything = DeliveryFilter()
    if since and until and until <= since:
        raise InvalidPeriod
    return DeliveryFilter(
        states=states_named(state),
        reason=reason,
        scope=scope,
        repo=repo or "",
        since=to_micros(since) if since else everything.since,
        until=to_micros(until) if until else everything.until,
    )


DeliveryQuery = Annotated[DeliveryFilter, Depends(_parse_filter)]


async def recheck_access(request: Request, database: Database, access: WebhookAccess) -> None:
    """Refuse a caller who has lost the access since the request began, for long responses."""
    exchange_of(request).known_caller = None
    caller = await caller_of(request)
    if access.owner.is_organization:
        async with database.read() as conn:
            await organizations.get_as(
                conn, access.owner.name, user_id=caller.user_id, needed=Role.admin
            )


router = Router(tags=["webhooks"])


@router.get(f"{OWN_WEBHOOKS}/{{webhookId}}/activity")
async def get_webhook_activity(
    conn: ReadConn, access: WebhookOwner, webhook_id: WebhookId
) -> WebhookActivity:
    """Show what a webhook does: names of its job's secrets, whose rights count, its daily limit."""
    webhook = await webhooks.get(conn, access, webhook_id)
    return WebhookActivity.of(await service.get_activity(conn, webhook))


_DELIVERIES = f"{OWN_WEBHOOKS}/{{webhookId}}/deliveries"


@router.get(_DELIVERIES, responses=PAGED_RESPONSES)
async def list_webhook_deliveries(
    conn: ReadConn,
    access: WebhookOwner,
    webhook_id: WebhookId,
    filters: DeliveryQuery,
    page: PageQuery,
) -> list[Delivery]:
    """List the deliveries of a webhook, newest first, page by page.

    With a filter a page may have fewer than `limit`, or none, and yet link to a next one.
    """
    webhook = await webhooks.get(conn, access, webhook_id)
    window = await store.list_of(conn, webhook.id, filters, before=page.after, limit=page.reach)
    if window.stopped_at is not None:
        page.link(window.stopped_at)
    return [
        Delivery.of(each) for each in page.cut(window.deliveries, position=lambda each: each.id)
    ]


@router.get(f"{_DELIVERIES}/stream", response_class=Response, responses=EVENT_STREAM_RESPONSES)
async def stream_webhook_deliveries(
    request: Request,
    database: Db,
    access: WebhookOwner,
    webhook_id: WebhookId,
    since: LastEventId = None,
) -> Response:
    """Follow the deliveries of a webhook as they come and change.

    Each event `delivery` has a delivery in its `data`, with the payload and the last attempt.
    Who comes back with the `id` of the last event is told of everything since; of the last
    seconds before that, too, so compare `id`, `state` and `attempts`.
    """
    async with database.read() as conn:
        webhook = await webhooks.get(conn, access, webhook_id)
    return EventStream(
        request,
        partial(listen, database, webhook.id, since=None if since is None else int(since)),
        check_access=partial(recheck_access, request, database, access),
    )


@router.get(f"{_DELIVERIES}/{{delivery_id}}")
async def get_webhook_delivery(
    conn: ReadConn, access: WebhookOwner, webhook_id: WebhookId, delivery_id: str
) -> FullDelivery:
    """Get one delivery of a webhook with what was sent and every attempt."""
    webhook = await webhooks.get(conn, access, webhook_id)
    return FullDelivery.of_webhook(await service.get_delivery(conn, webhook, delivery_id), webhook)


organization_router = mirror_for_organizations(router)


resend_router = Router(tags=["webhooks"])

_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The webhook is not enabled, or the delivery has not ended."}
}


@resend_router.post(f"{OWN_WEBHOOKS}/{{webhookId}}/replay/{{delivery_id}}", responses=_CONFLICT)
async def replay_webhook_delivery(
    database: Db, access: WebhookOwner, webhook_id: WebhookId, delivery_id: str
) -> Sent:
    """Send a delivery of a webhook again, under the same id, to where the webhook points now.

    The answer waits up to 20 seconds for the attempt. If that fails, it is tried again as any
    other delivery is.
    """
    return Sent.of(await service.replay(database, access, webhook_id, delivery_id))


@resend_router.post(f"{OWN_WEBHOOKS}/{{webhookId}}/recover", responses=_CONFLICT)
async def recover_webhook(
    conn: Conn, access: WebhookOwner, webhook_id: WebhookId, body: Recover
) -> Recovered:
    """Send again all deliveries of a webhook since a time that failed or were not sent.

    They do not count for the daily limit.
    """
    since, until = to_micros(body.since), None if body.until is MISSING else to_micros(body.until)
    count = await service.recover(conn, access, webhook_id, since=since, until=until)
    return Recovered(count=count)


@resend_router.post(f"{OWN_WEBHOOKS}/{{webhookId}}/ping")
async def ping_webhook(database: Db, access: WebhookOwner, webhook_id: WebhookId) -> Sent:
    """Send something that tells of nothing to see whether a webhook's target answers.

    It is tried once, also while the webhook is disabled; the answer waits up to 20 seconds.
    """
    return Sent.of(await service.ping(database, access, webhook_id))


organization_resend_router = mirror_for_organizations(resend_router)
