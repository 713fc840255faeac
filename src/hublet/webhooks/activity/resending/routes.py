"""HTTP for sending again: replay, recover, ping."""

from typing import Any

from pydantic import MISSING

from hublet.core.clock import to_micros
from hublet.core.http import Conn, Db, Router
from hublet.webhooks.activity.resending import service
from hublet.webhooks.activity.resending.schemas import Recover, Recovered, Sent
from hublet.webhooks.auth import OWN, WebhookOwner, for_organizations

own = Router(tags=["webhooks"])

_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The webhook is not enabled, or the delivery has not ended."}
}


@own.post(f"{OWN}/{{webhook_id}}/replay/{{delivery_id}}", responses=_CONFLICT)
async def replay_webhook_delivery(
    database: Db, owner: WebhookOwner, webhook_id: str, delivery_id: str
) -> Sent:
    """Send a delivery of a webhook again, under the same id, to where the webhook points now.

    The answer waits up to 20 seconds for the attempt. If that fails, it is tried again as any
    other delivery is.
    """
    return Sent.of(await service.replay(database, owner, webhook_id, delivery_id))


@own.post(f"{OWN}/{{webhook_id}}/recover", responses=_CONFLICT)
async def recover_webhook(
    conn: Conn, owner: WebhookOwner, webhook_id: str, body: Recover
) -> Recovered:
    """Send again all deliveries of a webhook since a time that failed or were not sent.

    They do not count for the daily limit.
    """
    since, until = to_micros(body.since), None if body.until is MISSING else to_micros(body.until)
    count = await service.recover(conn, owner, webhook_id, since=since, until=until)
    return Recovered(count=count)


@own.post(f"{OWN}/{{webhook_id}}/ping")
async def ping_webhook(database: Db, owner: WebhookOwner, webhook_id: str) -> Sent:
    """Send something that tells of nothing to see whether a webhook's target answers.

    It is tried once, also while the webhook is disabled; the answer waits up to 20 seconds.
    """
    return Sent.of(await service.ping(database, owner, webhook_id))


of_organizations = for_organizations(own)
