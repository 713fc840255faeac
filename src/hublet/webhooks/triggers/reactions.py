"""What happens when something happens that a webhook may watch."""

from hublet.core.database import Connection
from hublet.core.outbox import reacts_at_once_to
from hublet.core.queue import handles
from hublet.webhooks.triggers import service
from hublet.webhooks.triggers.matching import TRIGGERING
from hublet.webhooks.triggers.records import Expansion

for _event_type in TRIGGERING:
    reacts_at_once_to(_event_type)(service.record)


@handles(service.EXPAND, reads=Expansion)
async def expand(conn: Connection, expansion: Expansion) -> None:
    await service.expand(conn, expansion)
