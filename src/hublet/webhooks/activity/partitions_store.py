"""SQL of the log's partitions on PostgreSQL: old days are dropped, with what they are still needed for kept.

Events and deliveries lie in the day of the event, attempts in the day of their delivery.
"""

import json

from hublet.core.database import Database, partitions
from hublet.core.database.partitions import DayTable
from hublet.webhooks.activity.records import PENDING
from hublet.webhooks.activity.store import SLACK

_EVENTS = DayTable(name="webhook_events", column="id")
_DELIVERIES = DayTable(name="webhook_deliveries", column="event_id")
_ATTEMPTS = DayTable(name="webhook_attempts", column="delivery_id")
TABLES = (_EVENTS, _DELIVERIES, _ATTEMPTS)


async def drop_days(database: Database, *, before: int) -> None:
    """Drop the days before this moment, each with a transaction of its own.

    What is still to be sent, or ended later than that, stays, with its event and its attempts.
    """
    for day in await partitions.list_ended(database, _DELIVERIES, before=before - SLACK):
        async with database.transaction() as conn:
            await partitions.drop(
                conn,
                _DELIVERIES,
                day,
                keep="p.state IN each($1) OR coalesce(p.finished_at, p.created_at) >= $2",
                values=(json.dumps(PENDING), before),
            )
    # Deliveries of those days that are left are few: they are in the default partition.
    for table, column in ((_EVENTS, "event_id"), (_ATTEMPTS, "id")):
        for day in await partitions.list_ended(database, table, before=before - SLACK):
            async with database.transaction() as conn:
                await partitions.drop(
                    conn,
                    table,
                    day,
                    keep=f"""
                    p.{table.column} IN (
                        SELECT d.{column} FROM webhook_deliveries d WHERE d.event_id < $1
                    )
                    """,
                    values=(day.end_id,),
                )
