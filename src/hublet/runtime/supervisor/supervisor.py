"""Supervisor of one worker's jobs: claims due jobs, drives their attempts and keeps the leases."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from hublet.core.clock import micros, monotonic
from hublet.core.database import Connection, Database, DatabaseUnavailable, Subscription
from hublet.core.leases import LeaseKeeper
from hublet.core.logs import get_logger
from hublet.core.retries import RETRY_SECONDS, retry
from hublet.jobs.records import JOBS
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import lease_store as claims
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.cleanup import Cleanup
from hublet.runtime.supervisor.scheduling import claim_jobs, make_plan
from hublet.runtime.supervisor.stepper import JobStepper

log = get_logger("jobs")

_SWEEP_SECONDS = 30.0
_TIDY_SECONDS = 3600.0
_QUEUE_MESSAGE_SECONDS = 1.0
# Under load jobs change by the hundred each second; they are looked at together.
_MIN_ROUND_SECONDS = 0.02


class Supervisor:
    """The jobs of one worker. Any number may run on one database and one machine."""

    def __init__(self, database: Database, worker: str, runner: Runner) -> None:
        self._settings = database.hub.settings
        self._database = database
        self._worker = worker
        self._runner = runner
        self._poll = self._settings.worker.poll_seconds
        self._attendant = JobStepper(database, runner, worker=worker, wake=self._wake)
        self._clearing = Cleanup(database, runner)
        # What is held, each with the bell that lets it be looked at before its time.
        self._held: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        lease_seconds = self._settings.worker.lease_seconds
        self._lease = round(lease_seconds * 1_000_000)
        self.leases = LeaseKeeper(
            database,
            claims.JobLeaseStore(worker=worker, lease=self._lease),
            self._held,
            interval_seconds=lease_seconds / 3,
        )
        self._told_at = 0.0
        self._bell: Subscription | None = None
        self._stopping = False

    def start(self) -> None:
        self._loops = [
            asyncio.create_task(self._take_always(), name="jobs-taking"),
            asyncio.create_task(
                self._always(self._clearing.sweep, _SWEEP_SECONDS), name="jobs-clearing"
            ),
            asyncio.create_task(
                self._always(self._runner.tidy_up, _TIDY_SECONDS), name="jobs-tidying"
            ),
            asyncio.create_task(self._always(self._heed_hints, RETRY_SECONDS), name="jobs-hints"),
        ]

    async def finish(self) -> None:
        """Take nothing more. Attempts go on by themselves: nobody has to wait for them."""
        self._stopping = True
        for bell in self._held.values():
            bell.set()
        if self._bell is not None:
            self._bell.ring()
        if self._loops:
            await asyncio.wait(self._loops[:1])
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def abandon(self) -> None:
        """Cancel what still runs here; `hand_back` gives it to others."""
        tasks = [*self._loops, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._attendant.abandon()
        self._held.clear()

    async def end_all(self) -> None:
        """Take nothing more, and end every attempt of this hub at once. Only for tests."""
        await self.finish()
        for handle in await self._runner.handles():
            await self._runner.stop(handle, grace_seconds=0)

    async def hand_back(self, conn: Connection) -> int:
        """Make everything this worker holds due for others; return how many."""
        return await self.leases.hand_back(conn)

    async def look(self) -> None:
        """Take what there is to take, and look once at everything held. For tests."""
        await self.take()
        held = list(self._held)
        for job_id, seconds in zip(
            held, await asyncio.gather(*map(self._attendant.step, held)), strict=True
        ):
            if seconds is None:
                self._held.pop(job_id, None)

    async def sweep(self) -> None:
        """Clear up once. For tests; else it happens from time to time."""
        await self._clearing.sweep()

    async def take(self, *, tells: bool = True) -> list[str]:
        """Hold what can be held now, and return it."""
        async with self._database.read() as reader:
            due = await claims.next_due(reader)
            if due is None or due > micros():
                return []
            if not await make_plan(reader, self._settings, tells=tells):
                return []
        async with self.leases.lock:
            async with self._database.transaction() as conn:
                taken = await claim_jobs(
                    conn,
                    self._settings,
                    worker=self._worker,
                    runner=self._runner.name,
                    lease=self._lease,
                )
            for job_id in taken:
                self._held[job_id] = asyncio.Event()
        return taken

    def _wake(self, job_id: str) -> None:
        if (bell := self._held.get(job_id)) is not None:
            bell.set()

    async def _take_always(self) -> None:
        with self._database.subscribe(JOBS) as bell:
            self._bell = bell
            await retry(lambda: self._take_until_stopped(bell), log_failure=log_failure)

    async def _take_until_stopped(self, bell: Subscription) -> None:
        while not self._stopping:
            begun = monotonic()
            self._attend(await self.take(tells=self._is_time_to_tell()))
            await self._heed_cancels()
            await bell.wait(timeout=await self._seconds_until_due())
            await asyncio.sleep(max(0, begun + _MIN_ROUND_SECONDS - monotonic()))

    def _is_time_to_tell(self) -> bool:
        """A line that moves all the time is not told of all the time."""
        if monotonic() - self._told_at < _QUEUE_MESSAGE_SECONDS:
            return False
        self._told_at = monotonic()
        return True

    async def _seconds_until_due(self) -> float:
        now = micros()
        async with self._database.read() as conn:
            due = await claims.next_due_after(conn, now)
        return self._poll if due is None else min(self._poll, (due - now) / 1_000_000)

    async def _heed_cancels(self) -> None:
        if self._held:
            async with self._database.read() as conn:
                canceled = await store.list_canceled(conn, worker=self._worker)
            for job_id in canceled:
                self._wake(job_id)

    def _attend(self, taken: Iterable[str]) -> None:
        for job_id in taken:
            task = asyncio.create_task(self._attend_to(job_id), name=f"job-{job_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _attend_to(self, job_id: str) -> None:
        bell = self._held[job_id]
        await retry(lambda: self._step_until_ended(job_id, bell), log_failure=log_failure)
        # While the last attempt was cleared away the next one may have got its place.
        if self._held.get(job_id) is bell:
            del self._held[job_id]

    async def _step_until_ended(self, job_id: str, bell: asyncio.Event) -> None:
        while not self._stopping:
            bell.clear()
            seconds = await self._attendant.step(job_id)
            if seconds is None:
                return
            if seconds and not self._stopping:
                await _wait_for_wake(bell, seconds)

    async def _heed_hints(self) -> None:
        async for handle in self._runner.watch():
            if (job_id := self._attendant.jobs_by_handle.get(handle)) is not None:
                self._wake(job_id)

    async def _always(self, duty: Callable[[], Awaitable[None]], pause: float) -> None:
        async def loop() -> None:
            while not self._stopping:
                await duty()
                await asyncio.sleep(pause)

        await retry(loop, log_failure=log_failure, seconds=pause)


async def _wait_for_wake(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return


def log_failure(error: BaseException) -> None:
    if isinstance(error, DatabaseUnavailable):
        log.warning("jobs wait for the database", reason=error.reason)
    else:
        log.error("looking after jobs stumbled", exc_info=error)
