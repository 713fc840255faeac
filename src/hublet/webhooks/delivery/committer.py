"""Group commit of outcomes: many share one transaction, so that an fsync is paid per group."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from hublet.core.clock import micros
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.logs import get_logger
from hublet.core.retries import retry
from hublet.webhooks.delivery.health import Health
from hublet.webhooks.delivery.metrics import DeliveryMetrics
from hublet.webhooks.delivery.outcomes import write_outcomes
from hublet.webhooks.records import Attempt, Outcome

log = get_logger("webhooks")

LARGEST_GROUP = 256
# While a group is being written the next one gathers; what is sent beyond that would be sent again after a kill.
MOST_UNWRITTEN = 2 * LARGEST_GROUP
_GATHER_SECONDS = 0.004
_LAST_SECONDS = 2.0


class Committer:
    """One for a worker. Calls `on_commit` with each group that is committed, and when there is room."""

    def __init__(
        self,
        database: Database,
        *,
        worker: str,
        known: Mapping[str, Health],
        on_commit: Callable[[Sequence[Outcome], dict[str, Health]], None],
        metrics: DeliveryMetrics,
    ) -> None:
        self._database = database
        self._worker = worker
        self._known = known
        self._on_commit = on_commit
        self._metrics = metrics
        self._waiting: list[Outcome] = []
        self._writing = 0
        self._arrived = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None

    @property
    def backlog(self) -> int:
        """How many outcomes are not committed yet."""
        return len(self._waiting) + self._writing

    def start(self) -> None:
        self._runner = asyncio.create_task(self._run(), name="webhook-results")

    def add(self, outcome: Outcome) -> None:
        self._waiting.append(outcome)
        self._arrived.set()

    async def flushed(self) -> None:
        while self.backlog:  # noqa: ASYNC110 - only at the end of a worker.
            await asyncio.sleep(_GATHER_SECONDS)

    async def stop(self) -> None:
        """Write the last outcomes, if that is quick; the other deliveries are sent again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self.flushed()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            if len(self._waiting) < LARGEST_GROUP:
                await asyncio.sleep(_GATHER_SECONDS)
            group = self._waiting[:LARGEST_GROUP]
            del self._waiting[:LARGEST_GROUP]
            if not self._waiting:
                self._arrived.clear()
            self._writing = len(group)
            await self._write_until_done(group)
            self._writing = 0
            self._on_commit((), {})

    async def _write_until_done(self, group: list[Outcome]) -> None:
        """Write the group however long it takes: what was sent must not be sent again."""

        def log_failure(error: BaseException) -> None:
            reason = error.reason if isinstance(error, DatabaseUnavailable) else str(error)
            log.warning("results wait for the database", reason=reason, count=len(group))

        try:
            await retry(lambda: self._write(group), log_failure=log_failure, on=DatabaseUnavailable)
        except Exception as error:
            log.exception("results could not be written", count=len(group), exc_info=error)
            await self._split(group)

    async def _write(self, group: list[Outcome]) -> None:
        async with self._database.transaction() as conn:
            healths = await write_outcomes(conn, group, self._known, worker=self._worker)
        self._metrics.committed(group)
        self._on_commit(group, healths)

    async def _split(self, group: list[Outcome]) -> None:
        """Find the one that cannot be written, and write in its place that the hub failed."""
        if len(group) > 1:
            await self._write_until_done(group[: len(group) // 2])
            await self._write_until_done(group[len(group) // 2 :])
        elif not _is_internal_error(group[0]):
            await self._write_until_done([_as_internal_error(group[0])])
        else:
            self._on_commit(group, {})


def _is_internal_error(outcome: Outcome) -> bool:
    return outcome.attempt is not None and outcome.attempt.reason == "internal-error"


def _as_internal_error(outcome: Outcome) -> Outcome:
    attempt = Attempt(
        number=outcome.delivery.attempts + 1,
        started_at=micros(),
        reason="internal-error",
        detail="The hub could not keep what became of this attempt.",
        total_micros=0,
    )
    return Outcome(delivery=outcome.delivery, attempt=attempt)
