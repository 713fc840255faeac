"""Rules of looking at what became of deliveries."""

from hublet.core.database import Reader
from hublet.webhooks.activity import store
from hublet.webhooks.activity.errors import DeliveryNotFound
from hublet.webhooks.activity.records import Full
from hublet.webhooks.records import Webhook


async def get(conn: Reader, webhook: Webhook, delivery_id: str) -> Full:
    """Return a delivery of this webhook with everything that is known of it."""
    found = await store.find(conn, webhook.id, delivery_id)
    if found is None:
        raise DeliveryNotFound(delivery_id)
    listed, payload = found
    return Full(
        listed=listed, payload=payload, attempts=await store.list_attempts(conn, delivery_id)
    )
