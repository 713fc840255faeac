"""Leases on deliveries: extended while a worker lives, released when it stops or dies."""

from collections.abc import Iterable, Sequence

from hublet.core.clock import monotonic
from hublet.core.database import Connection, Database
from hublet.webhooks.delivery import store
from hublet.webhooks.delivery.lanes_store import make_due
from hublet.webhooks.records import DELIVERIES_CHANNEL

_KEEP_SECONDS = 15.0


class Leases:
    """The deliveries in the hands of one worker; as long as they are here they stay its own."""

    def __init__(self, database: Database, *, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._held: set[str] = set()
        self._kept_at = monotonic()

    def add(self, delivery_ids: Iterable[str]) -> None:
        self._held.update(delivery_ids)

    def drop(self, delivery_ids: Iterable[str]) -> None:
        self._held.difference_update(delivery_ids)

    async def keep(self) -> None:
        """Give a sign of life for what is held when it is time to, and free what is abandoned.

        That may also be something of our own, when a commit was kept of which we never heard.
        """
        if monotonic() - self._kept_at < _KEEP_SECONDS:
            return
        if self._held:
            async with self._database.transaction() as conn:
                await store.extend(conn, self._held, worker=self._worker)
        async with self._database.read() as reader:
            is_any_expired = await store.has_expired(reader)
        if is_any_expired:
            async with self._database.transaction() as conn:
                await _make_due(conn, await store.release_expired(conn, besides=self._held))
        self._kept_at = monotonic()


async def release(conn: Connection, *, worker: str) -> int:
    """Make everything that a stopping or dead worker held due at once; return how many."""
    return await _make_due(conn, await store.release_all(conn, worker=worker))


async def _make_due(conn: Connection, webhook_ids: Sequence[str]) -> int:
    if webhook_ids:
        await make_due(conn, set(webhook_ids))
        conn.wake(DELIVERIES_CHANNEL)
    return len(webhook_ids)
