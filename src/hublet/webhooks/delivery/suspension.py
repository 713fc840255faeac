"""Suspension of failing webhooks: what follows from the health of a target."""

from hublet.core.database import Connection
from hublet.core.outbox import Event, publish
from hublet.events import WebhookFailing, WebhookRecovered, WebhookSuspended
from hublet.webhooks.delivery import lanes_store
from hublet.webhooks.delivery.health import Judgement
from hublet.webhooks.delivery.store import mark_waiting_unsent
from hublet.webhooks.records import UnsentReason


async def apply_judgement(
    conn: Connection,
    webhook_id: str,
    judgement: Judgement,
    *,
    status: int | None = None,
    reason: str | None = None,
) -> None:
    """Suspend and tell what the judgement says; status and reason are of the last attempt."""
    if judgement.tells is None and not judgement.suspends and not judgement.recovers:
        return
    found = await lanes_store.list_webhooks(conn, [webhook_id])
    if not found:
        return
    whose = {
        "webhook_id": webhook_id,
        "owner_id": found[0]["owner_id"],
        "creator_id": found[0]["creator_id"],
    }
    fact: Event
    if judgement.suspends:
        if not await lanes_store.suspend(conn, webhook_id):
            return
        await mark_waiting_unsent(conn, webhook_id, UnsentReason.suspended)
        fact = WebhookSuspended(**whose, status=status, reason=reason)
    elif judgement.tells is not None:
        percent = judgement.tells
        fact = WebhookFailing(**whose, percent=percent, status=status, reason=reason)
    else:
        fact = WebhookRecovered(**whose)
    await publish(conn, fact)
