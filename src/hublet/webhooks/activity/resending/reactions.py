"""What a worker does about deliveries that are sent again."""

from hublet.core.database import Connection
from hublet.core.queue import handles
from hublet.webhooks.activity.resending import service
from hublet.webhooks.activity.resending.records import Recovery


@handles(service.RECOVER, reads=Recovery)
async def recover_deliveries(conn: Connection, recovery: Recovery) -> None:
    await service.recover_batch(conn, recovery)
