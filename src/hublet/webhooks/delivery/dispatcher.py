"""Dispatcher: sends the deliveries that are next in their lanes, after a last check of access."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from hublet.core.database import Database
from hublet.core.retries import is_being_cancelled, retry
from hublet.webhooks.delivery.committer import LARGEST_GROUP, Committer
from hublet.webhooks.delivery.failure_messages import log_failure
from hublet.webhooks.delivery.lanes import Lanes
from hublet.webhooks.delivery.records import DeliveryTarget
from hublet.webhooks.delivery.sender import Sender, internal_error
from hublet.webhooks.delivery.targets import TargetCache, find_refusals
from hublet.webhooks.records import ClaimedDelivery, Outcome, UnsentReason


class Dispatcher:
    def __init__(
        self,
        database: Database,
        lanes: Lanes,
        committer: Committer,
        *,
        changes: Callable[[], int],
    ) -> None:
        """`changes` returns another number after every commit that may concern webhooks."""
        self._database = database
        self._lanes = lanes
        self._targets = TargetCache()
        self._committer = committer
        self._changes = changes
        self._sender = Sender(database)
        self._turn = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.create_task(
            retry(self._run, log_failure=log_failure), name="webhook-sending"
        )

    def wake(self) -> None:
        """Try again: a delivery was added, or there is room to send."""
        self._turn.set()

    async def finish(self) -> None:
        """Wait for the attempts in flight; nothing new may be queued any more."""
        while self._lanes.in_flight:  # noqa: ASYNC110 - only at the end of a worker.
            await asyncio.sleep(0.005)

    async def abandon(self) -> None:
        """Cancel the attempts in flight."""
        running = [*self._running, *([] if self._loop is None else [self._loop])]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._sender.close()

    async def _run(self) -> None:
        while True:
            await self._turn.wait()
            self._turn.clear()
            # Results that are not written would be sent again after a crash: no more than
            # a group or two may wait. The committer calls when there is room again.
            if self._committer.backlog >= 2 * LARGEST_GROUP:
                continue
            picked = self._lanes.pick()
            if not picked:
                continue
            try:
                await self._launch(picked)
            except BaseException:
                self._put_back(picked)
                self._turn.set()
                raise

    async def _launch(self, picked: Sequence[ClaimedDelivery]) -> None:
        needed = {each.webhook_id for each in picked}
        async with self._database.read() as conn:
            targets = await self._targets.current(conn, needed, since=self._changes())
            present = [each for each in picked if each.webhook_id in targets]
            refused = await find_refusals(conn, present, targets)
        for each in picked:
            self._send_or_not(each, targets, refused.get(each.id))

    def _send_or_not(
        self,
        delivery: ClaimedDelivery,
        targets: Mapping[str, DeliveryTarget],
        refusal: UnsentReason | None,
    ) -> None:
        target = targets.get(delivery.webhook_id)
        if target is None or refusal is not None:
            # A webhook that was deleted has no row left to write to.
            self._finish(Outcome(delivery=delivery, unsent=refusal))
            return
        task = asyncio.create_task(self._send(delivery, target))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _send(self, delivery: ClaimedDelivery, target: DeliveryTarget) -> None:
        try:
            outcome = await self._sender.attempt(delivery, target)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                self._lanes.release(delivery)
                raise
            log_failure(error)
            outcome = internal_error(delivery, target)
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        counts = outcome.attempt is not None and not outcome.delivery.ping
        self._lanes.release(outcome.delivery, failed=counts and not outcome.succeeded)
        self._committer.add(outcome)
        self._turn.set()

    def _put_back(self, picked: Sequence[ClaimedDelivery]) -> None:
        for each in picked:
            self._lanes.put_back(each)
