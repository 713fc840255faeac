"""Delivery engine of a worker: claims deliveries, dispatches them and commits their outcomes."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from hublet.core.database import Connection, Database
from hublet.core.leases import LeaseKeeper
from hublet.webhooks.delivery.claims import (
    LEASE_INTERVAL_SECONDS,
    ClaimedBatch,
    ClaimLoop,
    DeliveryLeaseStore,
)
from hublet.webhooks.delivery.committer import Committer
from hublet.webhooks.delivery.dispatcher import Dispatcher
from hublet.webhooks.delivery.health import Health
from hublet.webhooks.delivery.lanes import Lanes
from hublet.webhooks.delivery.metrics import DeliveryMetrics
from hublet.webhooks.records import Outcome

_MOST_KNOWN = 10_000


class DeliveryEngine:
    """The deliveries of one worker. Any number may run on one database."""

    def __init__(self, database: Database, worker: str) -> None:
        settings = database.hub.settings
        self._database = database
        self._grace = settings.server.stop_grace_seconds
        # The health of targets when this worker last saw them.
        self._known: dict[str, Health] = {}
        self._lanes = Lanes(concurrency=settings.webhooks.concurrency)
        self._held: set[str] = set()
        self._leases = LeaseKeeper(
            database,
            DeliveryLeaseStore(worker=worker),
            self._held,
            interval_seconds=LEASE_INTERVAL_SECONDS,
        )
        self.metrics = DeliveryMetrics(lambda: self._lanes.in_flight)
        self._committer = Committer(
            database,
            worker=worker,
            known=self._known,
            on_commit=self._after_commit,
            metrics=self.metrics,
        )
        self._claims = ClaimLoop(database, self._lanes, worker=worker, receive=self._receive)
        self._dispatcher = Dispatcher(
            database, self._lanes, self._committer, changes=lambda: self._claims.changes
        )

    def start(self) -> None:
        self._committer.start()
        self._dispatcher.start()
        self._claims.start()

    async def finish(self) -> None:
        """Claim nothing more; wait until all attempts have ended and their outcomes are written."""
        await self._claims.finish()
        self._lanes.drain()
        await self._dispatcher.finish()
        await self._committer.flushed()

    async def abandon(self) -> None:
        """Cancel what still runs; `hand_back` gives it to others."""
        await self._claims.abandon()
        await self._dispatcher.abandon()
        await self._committer.stop()

    async def hand_back(self, conn: Connection) -> int:
        """Release everything this worker has claimed, due at once; return how many."""
        return await self._leases.hand_back(conn)

    async def stop(self) -> None:
        """Finish within the grace time, hand back the rest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self.finish()
        await self.abandon()
        async with self._database.transaction() as conn:
            await self.hand_back(conn)

    async def extend_leases(self) -> None:
        """Extend the leases when it is time to; to be called every few seconds."""
        await self._leases.extend_when_due()

    async def settle(self) -> None:
        """Wait until nothing is due, in flight or unwritten. For tests and benchmarks."""
        while not await self._is_settled():
            self._claims.wake()
            await asyncio.sleep(0.002)

    async def _is_settled(self) -> bool:
        async with self._database.read() as conn:
            is_empty = await self._claims.is_empty(conn)
        return is_empty and self._lanes.is_idle and not self._committer.backlog

    def _receive(self, batch: ClaimedBatch) -> None:
        self._held.update(each.id for each in batch.deliveries)
        self._set_healths({each: lane.health for each, lane in batch.lanes.items()})
        for each in batch.deliveries:
            lane = batch.lanes[each.webhook_id]
            self._lanes.add(each, host=lane.host, urgent=each.ping or lane.is_degraded)
        self._dispatcher.wake()

    def _set_healths(self, healths: dict[str, Health]) -> None:
        """Shut the lanes of degraded targets, and open those of targets that recovered."""
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known.update(healths)
        for webhook_id, health in healths.items():
            if health.degraded_since is None:
                self._lanes.open(webhook_id)
                continue
            for waiting in self._lanes.shut(webhook_id):
                self._committer.add(Outcome(delivery=waiting))

    def _after_commit(self, group: Sequence[Outcome], healths: dict[str, Health]) -> None:
        self._held.difference_update(each.delivery.id for each in group)
        self._set_healths(healths)
        self._dispatcher.wake()
        self._claims.wake()
