"""Worker: dispatches events, runs tasks, delivers webhooks, supervises jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import hublet.reactions  # noqa: F401 - importing registers the reactions and tasks that it runs
from hublet.core import outbox, queue, totals
from hublet.core.clock import monotonic, process_time
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.core.leases import WorkerPresence
from hublet.core.logs import get_logger
from hublet.core.machine import claim_upkeep
from hublet.core.queue.lanes import QuickLane, SlowLane, log_failure
from hublet.core.queue.leases import TaskLeases
from hublet.core.retries import retry
from hublet.repos import pruning as repositories
from hublet.runtime.supervisor import lifecycle
from hublet.runtime.supervisor.lifecycle import SupervisorLifecycle
from hublet.runtime.volumes import checkouts
from hublet.storage.object_store import has_shared_store
from hublet.webhooks.delivery import claims
from hublet.webhooks.delivery.engine import DeliveryEngine

log = get_logger("worker")

# What each machine does for its own folder: what lies in the shared store is pruned once, by a task.
_LOCAL_SWEEPS = (
    repositories.remove_orphans,
    repositories.remove_interrupted,
    checkouts.remove_unused,
)
_SWEEP_SECONDS = 86_400.0
_LOOK_SECONDS = 600.0
# Until they are folded, changes are added up by whoever reads a total.
_FOLD_SECONDS = 10.0

# What is due and yet cannot be claimed is just being claimed by another worker.
_OTHERS_WERE_FASTER_SECONDS = 0.02

# Ten events at once cost little more than one: while the process is busy, and few of them come at a time,
# they gather for so long.
_FEW = 10
_GATHER_SECONDS = 0.02
_HIGH_LOAD = 0.5
_LOAD_SECONDS = 0.1


class _ProcessLoad:
    """How much of a core this process has used of late."""

    def __init__(self) -> None:
        self._since, self._used = monotonic(), process_time()
        self._is_high = False

    def is_high(self) -> bool:
        at = monotonic()
        if (seconds := at - self._since) >= _LOAD_SECONDS:
            used = process_time()
            self._is_high = used - self._used > _HIGH_LOAD * seconds
            self._since, self._used = at, used
        return self._is_high


class Worker:
    """One worker. Any number may run on one database, in any number of processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._settings = database.hub.settings.worker
        self._grace = database.hub.settings.server.stop_grace_seconds
        self.name = new_object_id()
        self._presence = WorkerPresence(
            database.hub.settings.database.data_dir / "workers", self.name
        )
        self._leases = TaskLeases(database, worker=self.name)
        self._quick = QuickLane(database, self._leases)
        self._slow = SlowLane(database, self._leases)
        self.deliveries = DeliveryEngine(database, self.name)
        self._jobs = SupervisorLifecycle(database, self.name)
        self._load = _ProcessLoad()
        self._stopping = False
        self._loops: list[asyncio.Task[None]] = []
        self._heart: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._loops = [
            asyncio.create_task(self._repeat(channel, until_due, step), name=name)
            for name, channel, until_due, step in (
                ("hand-on", outbox.CHANNEL, self._seconds_until_event, self._dispatch_events),
                ("quick", queue.CHANNEL, self._quick.seconds_until_due, self._quick.step),
                ("slow", queue.CHANNEL, self._slow.seconds_until_due, self._slow.step),
            )
        ]
        self.deliveries.start()
        self._jobs.start()
        self._heart = [
            asyncio.create_task(self._beat(duty), name="beat")
            for duty in (
                self._extend_task_leases,
                self._take_over_from_dead_workers,
                self.deliveries.extend_leases,
                self._jobs.extend_leases,
            )
        ]
        self._heart.append(asyncio.create_task(self._keep_totals(), name="totals"))
        if has_shared_store(self._database.hub.settings):
            self._heart.append(asyncio.create_task(self._keep_folder(), name="local-sweeps"))
        log.info("worker started", worker=self.name)

    async def stop(self) -> None:
        """Finish what is running within the grace time, hand back the rest."""
        self._stopping = True
        self._database.wake([outbox.CHANNEL, queue.CHANNEL])
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await asyncio.gather(
                    self._slow.finish(),
                    self.deliveries.finish(),
                    self._jobs.finish(),
                    *map(_wait_for_end, self._loops),
                )
        for task in [*self._loops, *self._heart]:
            task.cancel()
        await asyncio.gather(*self._loops, *self._heart, return_exceptions=True)
        await asyncio.gather(self._slow.abandon(), self.deliveries.abandon(), self._jobs.abandon())
        await self._leave()

    async def end_jobs(self) -> None:
        """End all that runs as a job of this hub. Only tests do: else jobs outlive their worker."""
        await self._jobs.end_all()

    async def _leave(self) -> None:
        try:
            async with self._database.transaction() as conn:
                count = await self._leases.keeper.hand_back(conn)
                deliveries = await self.deliveries.hand_back(conn)
                jobs = await self._jobs.hand_back(conn)
        except Exception as error:  # noqa: BLE001 - whatever it was, neighbours take the work over
            log_failure(error)
            self._presence.vanish()
        else:
            self._presence.leave()
            log.info(
                "worker stopped",
                worker=self.name,
                handed_back=count,
                deliveries=deliveries,
                jobs=jobs,
            )

    async def _repeat(
        self,
        channel: str,
        seconds_until_due: Callable[[], Awaitable[float | None]],
        step: Callable[[], Awaitable[int]],
    ) -> None:
        """Step while there is work; then sleep until a commit, a due task or the back-stop.

        Looking is a read, so that an idle worker never holds up those who write. While the process is
        busy, a step that found little is followed by a rest in which more gathers.
        """
        poll = self._settings.poll_seconds
        with self._database.subscribe(channel) as subscription:

            async def loop() -> None:
                while not self._stopping:
                    seconds = await seconds_until_due()
                    if seconds is not None and seconds <= 0:
                        count = await step()
                        seconds = 0 if count else _OTHERS_WERE_FASTER_SECONDS
                        if 0 < count <= _FEW and self._load.is_high():
                            await asyncio.sleep(_GATHER_SECONDS)
                    if seconds != 0 and not self._stopping:
                        limit = poll if seconds is None else min(seconds, poll)
                        await subscription.wait(timeout=limit)

            await retry(loop, log_failure=log_failure)

    async def _seconds_until_event(self) -> float | None:
        async with self._database.read() as conn:
            return 0 if await outbox.is_waiting(conn) else None

    async def _dispatch_events(self) -> int:
        async with self._database.transaction() as conn:
            return await outbox.dispatch(conn, limit=self._settings.batch_size * 4)

    async def _beat(self, duty: Callable[[], Awaitable[None]]) -> None:
        """Do a duty every few seconds, also when it fails: without it tasks would run twice."""
        seconds = min(self._settings.lease_seconds / 3, self._settings.poll_seconds)

        async def loop() -> None:
            while True:
                await duty()
                await asyncio.sleep(seconds)

        await retry(loop, log_failure=log_failure, seconds=seconds)

    async def _keep_folder(self) -> None:
        """Sweep the data folder of this machine once a day, in one of its processes.

        A task runs on one machine only, and where each has a folder of its own the others would
        keep what was deleted.
        """

        async def loop() -> None:
            while True:
                await sweep_folder(self._database)
                await asyncio.sleep(_LOOK_SECONDS)

        await retry(loop, log_failure=log_failure, seconds=_LOOK_SECONDS)

    async def _keep_totals(self) -> None:
        """Fold what triggers added since the last look, all of it."""

        async def loop() -> None:
            while True:
                while await totals.fold(self._database):
                    pass
                await asyncio.sleep(_FOLD_SECONDS)

        await retry(loop, log_failure=log_failure, seconds=_FOLD_SECONDS)

    async def _extend_task_leases(self) -> None:
        self._slow.drop(await self._leases.keeper.extend_when_due())

    async def _take_over_from_dead_workers(self) -> None:
        for dead in self._presence.dead_workers():
            async with self._database.transaction() as conn:
                count = await queue.release_dead(conn, worker=dead)
                deliveries = await claims.release(conn, worker=dead)
                jobs = await lifecycle.release_jobs(conn, worker=dead)
            self._presence.forget(dead)
            log.info(
                "took over from a dead worker",
                worker=dead,
                tasks=count,
                deliveries=deliveries,
                jobs=jobs,
            )


async def sweep_folder(database: Database) -> bool:
    """Remove from the data folder what nothing needs, if that was not done within a day."""
    folder = database.hub.settings.database.data_dir
    if not await asyncio.to_thread(claim_upkeep, folder, every_seconds=_SWEEP_SECONDS):
        return False
    for sweep in _LOCAL_SWEEPS:
        await sweep(database)
    return True


async def _wait_for_end(loop: asyncio.Task[None]) -> None:
    await asyncio.wait([loop])
