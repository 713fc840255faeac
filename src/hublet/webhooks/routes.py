"""Routes of webhooks: create, show, update, enable, disable, delete, list."""

import msgspec
from fastapi import Request, Security

from hublet.core.database import Database, Reader
from hublet.core.http import Conn, FastRoute, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import caller_of, identify
from hublet.tokens.records import Scope
from hublet.webhooks import service
from hublet.webhooks.activity.routes import organization_resend_router, resend_router
from hublet.webhooks.activity.routes import organization_router as organization_deliveries_router
from hublet.webhooks.activity.routes import router as deliveries_router
from hublet.webhooks.auth import (
    ORGANIZATION_WEBHOOKS,
    OWN_WEBHOOKS,
    OwningOrganization,
    WebhookId,
    WebhookOwner,
    access_to_own,
    mirror_for_organizations,
)
from hublet.webhooks.records import WebhookAccess
from hublet.webhooks.schemas import (
    CreateWebhook,
    UpdateWebhook,
    Webhook,
    WebhookEnvelope,
    render_webhook,
)

router = Router(tags=["webhooks"])


@router.post(
    OWN_WEBHOOKS,
    responses={
        404: {"description": "Something to watch, or the source job, cannot be found."},
        409: {"description": "There are as many webhooks as there may be."},
    },
)
async def create_webhook(conn: Conn, access: WebhookOwner, body: CreateWebhook) -> WebhookEnvelope:
    """Create a webhook that posts to a URL or starts a job when something watched changes.

    It has exactly one target: `url`, `job`, or `jobSourceId`, the id of a job of the same owner to
    start again. The `secret`, of at most 256 characters, is never shown again.
    """
    webhook = await service.create(conn, access, body)
    return WebhookEnvelope.of(webhook, base_url=conn.hub.settings.base_url)


@router.get(f"{OWN_WEBHOOKS}/{{webhookId}}")
async def get_webhook(
    conn: ReadConn, access: WebhookOwner, webhook_id: WebhookId
) -> WebhookEnvelope:
    """Show a webhook."""
    webhook = await service.get(conn, access, webhook_id)
    return WebhookEnvelope.of(webhook, base_url=conn.hub.settings.base_url)


@router.post(f"{OWN_WEBHOOKS}/{{webhookId}}")
async def update_webhook(
    conn: Conn, access: WebhookOwner, webhook_id: WebhookId, body: UpdateWebhook
) -> WebhookEnvelope:
    """Change a webhook; a field that is left out, or an empty `watched`, keeps its value.

    Another kind of target takes the place of the old one. Of `secrets`, those listed are replaced,
    an empty value removes one. After a change of `secret` the old one signs along for 24 hours;
    an empty one takes both away.
    """
    webhook = await service.update(conn, access, webhook_id, body)
    return WebhookEnvelope.of(webhook, base_url=conn.hub.settings.base_url)


@router.post(f"{OWN_WEBHOOKS}/{{webhookId}}/enable")
async def enable_webhook(
    conn: Conn, access: WebhookOwner, webhook_id: WebhookId
) -> WebhookEnvelope:
    """Let a webhook act again that was disabled or suspended after failures."""
    webhook = await service.enable(conn, access, webhook_id)
    return WebhookEnvelope.of(webhook, base_url=conn.hub.settings.base_url)


@router.post(f"{OWN_WEBHOOKS}/{{webhookId}}/disable")
async def disable_webhook(
    conn: Conn, access: WebhookOwner, webhook_id: WebhookId
) -> WebhookEnvelope:
    """Stop the deliveries of a webhook; the webhook is kept."""
    webhook = await service.disable(conn, access, webhook_id)
    return WebhookEnvelope.of(webhook, base_url=conn.hub.settings.base_url)


@router.delete(f"{OWN_WEBHOOKS}/{{webhookId}}")
async def delete_webhook(conn: Conn, access: WebhookOwner, webhook_id: WebhookId) -> Done:
    """Delete a webhook for good, with all that is known of its deliveries."""
    await service.delete(conn, access, webhook_id)
    return Done()


organization_router = mirror_for_organizations(router)


async def list_webhooks(request: Request) -> bytes:
    """List one's own webhooks, oldest first."""
    access = access_to_own(request, await caller_of(request))
    database: Database = request.app.state.database
    async with database.read() as conn:
        return await _render_list(conn, access)


router.add_api_route(
    OWN_WEBHOOKS,
    list_webhooks,
    response_model=list[Webhook],
    dependencies=[Security(identify, scopes=[Scope.webhooks])],
    route_class_override=FastRoute,
)


@organization_router.get(ORGANIZATION_WEBHOOKS)
async def list_organization_webhooks(conn: ReadConn, access: OwningOrganization) -> list[Webhook]:
    """List the webhooks of an organization, oldest first."""
    base_url = conn.hub.settings.base_url
    found = await service.list_of(conn, access)
    return [Webhook.model_validate(render_webhook(webhook, base_url=base_url)) for webhook in found]


async def _render_list(conn: Reader, access: WebhookAccess) -> bytes:
    base_url = conn.hub.settings.base_url
    found = await service.list_of(conn, access)
    return msgspec.json.encode([render_webhook(webhook, base_url=base_url) for webhook in found])


# In the order in which they are looked up.
ROUTERS: tuple[Router, ...] = (
    router,
    organization_router,
    deliveries_router,
    organization_deliveries_router,
    resend_router,
    organization_resend_router,
)
