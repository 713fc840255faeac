"""Reactions of webhooks: record events that trigger them, expand, recover and prune deliveries."""

from typing import Any

from hublet.core.database import Connection, Database
from hublet.core.outbox import reacts_in_transaction_to
from hublet.core.queue import handles, handles_slowly
from hublet.webhooks.activity import service
from hublet.webhooks.activity.records import Recovery
from hublet.webhooks.triggers import service as triggers
from hublet.webhooks.triggers.payload import TRIGGER_EVENTS
from hublet.webhooks.triggers.records import Expansion

for _event_type in TRIGGER_EVENTS:
    reacts_in_transaction_to(_event_type)(triggers.record_event)


@handles(triggers.EXPAND, reads=Expansion)
async def expand_deliveries(conn: Connection, expansion: Expansion) -> None:
    await triggers.expand(conn, expansion)


@handles_slowly(service.PRUNE)
async def prune_deliveries(database: Database, _body: dict[str, Any]) -> None:
    await service.prune(database)


@handles(service.RECOVER, reads=Recovery)
async def recover_deliveries(conn: Connection, recovery: Recovery) -> None:
    await service.recover_batch(conn, recovery)
