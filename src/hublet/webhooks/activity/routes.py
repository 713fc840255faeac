"""HTTP for what became of a webhook's deliveries."""

from functools import partial

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, ReadConn, Router
from hublet.core.http.event_streams import EVENTS, EventStream
from hublet.core.http.paging import LINKED, AskedPage
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import service, store
from hublet.webhooks.activity.auth import AskedDeliveries, LastEventId, check_again
from hublet.webhooks.activity.schemas import Delivery, FullDelivery
from hublet.webhooks.activity.stream import listen
from hublet.webhooks.auth import OWN, WebhookOwner, for_organizations

own = Router(tags=["webhooks"])

_DELIVERIES = f"{OWN}/{{webhook_id}}/deliveries"


@own.get(_DELIVERIES, responses=LINKED)
async def list_webhook_deliveries(
    conn: ReadConn, owner: WebhookOwner, webhook_id: str, asked: AskedDeliveries, page: AskedPage
) -> list[Delivery]:
    """List the deliveries of a webhook, newest first, page by page.

    With a filter a page may have fewer than `limit`, or none, and yet link to a next one.
    """
    webhook = await webhooks.get(conn, owner, webhook_id)
    window = await store.list_of(conn, webhook.id, asked, before=page.after, limit=page.reach)
    if window.stopped_at is not None:
        page.link(window.stopped_at)
    return [Delivery.of(each) for each in page.cut(window.found, position=lambda each: each.id)]


@own.get(f"{_DELIVERIES}/stream", response_class=Response, responses=EVENTS)
async def stream_webhook_deliveries(
    request: Request, database: Db, owner: WebhookOwner, webhook_id: str, since: LastEventId = None
) -> Response:
    """Follow the deliveries of a webhook as they come and change.

    Each event `delivery` has a delivery in its `data`, with the payload and the last attempt.
    Who comes back with the `id` of the last event is told of everything since; of the last
    seconds before that, too, so compare `id`, `state` and `attempts`.
    """
    async with database.read() as conn:
        webhook = await webhooks.get(conn, owner, webhook_id)
    return EventStream(
        request,
        partial(listen, database, webhook.id, since=None if since is None else int(since)),
        check_access=partial(check_again, request, database, owner),
    )


@own.get(f"{_DELIVERIES}/{{delivery_id}}")
async def get_webhook_delivery(
    conn: ReadConn, owner: WebhookOwner, webhook_id: str, delivery_id: str
) -> FullDelivery:
    """Get one delivery of a webhook with what was sent and every attempt."""
    webhook = await webhooks.get(conn, owner, webhook_id)
    return FullDelivery.of_webhook(await service.get(conn, webhook, delivery_id), webhook)


of_organizations = for_organizations(own)
