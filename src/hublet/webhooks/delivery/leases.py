"""Leases on deliveries: what `LeaseKeeper` asks of them, and the release of a dead worker's."""

from collections.abc import Collection, Sequence

from hublet.core.database import Connection, Reader
from hublet.webhooks.delivery import store
from hublet.webhooks.delivery.lanes_store import make_due
from hublet.webhooks.records import DELIVERIES_CHANNEL

# A quarter of a lease, so that a few failures in a row lose nothing.
LEASE_INTERVAL_SECONDS = 15.0


class DeliveryLeaseStore:
    """Leases of one worker on deliveries, as `LeaseKeeper` wants them."""

    def __init__(self, *, worker: str) -> None:
        self._worker = worker

    async def extend(self, conn: Connection, held: Collection[str]) -> list[str]:
        await store.extend(conn, held, worker=self._worker)
        return []

    async def has_expired(self, conn: Reader, _held: Collection[str]) -> bool:
        return await store.has_expired(conn)

    async def release_expired(self, conn: Connection, held: Collection[str]) -> None:
        await _make_due(conn, await store.release_expired(conn, except_for=held))

    async def release_all(self, conn: Connection) -> int:
        return await release(conn, worker=self._worker)


async def release(conn: Connection, *, worker: str) -> int:
    """Make everything that a stopping or dead worker held due at once; return how many."""
    return await _make_due(conn, await store.release_all(conn, worker=worker))


async def _make_due(conn: Connection, webhook_ids: Sequence[str]) -> int:
    if webhook_ids:
        await make_due(conn, set(webhook_ids))
        conn.wake(DELIVERIES_CHANNEL)
    return len(webhook_ids)
