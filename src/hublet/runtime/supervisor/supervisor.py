"""Supervisor of one worker's jobs: claims due jobs, drives their attempts and keeps the leases."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from hublet.core.clock import micros, monotonic
from hublet.core.database import (
    Connection,
    Database,
    DatabaseUnavailable,
    Reader,
    Subscription,
)
from hublet.core.leases import LeaseKeeper
from hublet.core.logs import get_logger
from hublet.core.retries import RETRY_SECONDS, retry
from hublet.jobs.records import DUE_JOBS
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.cleanup import Cleanup
from hublet.runtime.supervisor.log_shipper import LogShipper
from hublet.runtime.supervisor.machines import MachineLease
from hublet.runtime.supervisor.sampler import UsageSampler
from hublet.runtime.supervisor.scheduling import claim_jobs, make_plan
from hublet.runtime.supervisor.stepper import JobStepper

log = get_logger("jobs")

_SWEEP_SECONDS = 30.0
_TIDY_SECONDS = 3600.0
_QUEUE_MESSAGE_SECONDS = 1.0
# Under load jobs come by the hundred each second; they are claimed together. After a round the
# loop rests for as long as the round took, but no longer than this.
_LONGEST_REST_SECONDS = 0.02


class Supervisor:
    """The jobs of one worker. Any number may run on one database and one machine."""

    def __init__(self, database: Database, worker: str, runner: Runner) -> None:
        self._settings = database.hub.settings
        self._database = database
        self._worker = worker
        self._runner = runner
        self._poll = self._settings.worker.poll_seconds
        self.machine = MachineLease(database, runner)
        self._logs = LogShipper(database)
        self._stepper = JobStepper(
            database,
            runner,
            machine=self.machine,
            logs=self._logs,
            worker=worker,
            wake=self._wake,
        )
        self._cleanup = Cleanup(database, runner, self.machine)
        self._sampler = UsageSampler(database, runner, self._stepper.jobs_by_handle)
        # By the id of a claimed job, the event that brings its next step forward.
        self._held: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        lease_seconds = self._settings.worker.lease_seconds
        self._lease = round(lease_seconds * 1_000_000)
        self.leases = LeaseKeeper(
            database,
            store.JobLeaseStore(worker=worker, lease=self._lease),
            self._held,
            interval_seconds=lease_seconds / 3,
        )
        self._queue_messages_at = 0.0
        # Whether the last claim left jobs that were due: then a read tells whether another one is
        # worth a transaction.
        self._leaves_jobs = False
        self._changes: Subscription | None = None
        self._stopping = False

    def start(self) -> None:
        self._loops = [
            asyncio.create_task(self._claim_loop(), name="jobs-taking"),
            asyncio.create_task(
                self._repeat(self._cleanup.sweep, _SWEEP_SECONDS), name="jobs-clearing"
            ),
            asyncio.create_task(
                self._repeat(self._runner.tidy_up, _TIDY_SECONDS), name="jobs-tidying"
            ),
            asyncio.create_task(
                self._repeat(self._stepper.tidy_up, _TIDY_SECONDS), name="jobs-images"
            ),
            asyncio.create_task(self._repeat(self._handle_hints, RETRY_SECONDS), name="jobs-hints"),
            asyncio.create_task(
                retry(self._sampler.run, log_failure=log_failure), name="jobs-sampling"
            ),
        ]
        if self._logs.is_active:
            shipping = retry(self._logs.run, log_failure=log_failure)
            self._loops.append(asyncio.create_task(shipping, name="jobs-logs"))

    async def finish(self) -> None:
        """Claim nothing more. Attempts go on by themselves: nobody has to wait for them."""
        self._stopping = True
        for wake in self._held.values():
            wake.set()
        if self._changes is not None:
            self._changes.wake()
        if self._loops:
            await asyncio.wait(self._loops[:1])
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def abandon(self) -> None:
        """Cancel what still runs here; `hand_back` releases it to other workers."""
        tasks = [*self._loops, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._stepper.abandon()
        self._held.clear()

    async def end_all(self) -> None:
        """Claim nothing more, and stop every attempt of this hub at once. Only for tests."""
        await self.finish()
        for handle in await self._runner.handles():
            await self._runner.stop(handle, grace_seconds=0)

    async def hand_back(self, conn: Connection) -> int:
        """Make everything this worker has claimed due for others; return how much."""
        return await self.leases.hand_back(conn)

    async def step_all(self) -> None:
        """Claim what is due, and do one step of every claimed job. For tests."""
        await self.claim()
        held = list(self._held)
        for job_id, seconds in zip(
            held, await asyncio.gather(*map(self._stepper.step, held)), strict=True
        ):
            if seconds is None:
                self._held.pop(job_id, None)

    async def sample(self) -> None:
        """Keep what every attempt uses now. For tests; a loop does it every few seconds."""
        await self._sampler.sample()

    async def ship_logs(self) -> None:
        """Ship what attempts have printed. For tests; a loop does it every few seconds."""
        await self._logs.ship_all(at_once=True)

    async def sweep(self) -> None:
        """Clean up once. For tests; a loop does it from time to time."""
        await self._cleanup.sweep()

    async def claim(self, *, notify: bool = True) -> list[str]:
        """Claim the jobs that can begin or go on now, and return their ids.

        With `notify`, the message of a job that waits says how many are before it.
        """
        async with self._database.read() as reader:
            due = await store.next_due(reader)
            if due is None or due > micros():
                return []
            if self._leaves_jobs and not await self._has_plan(reader, notify=notify):
                return []
        async with self.leases.lock:
            async with self._database.transaction() as conn:
                claimed, self._leaves_jobs = await claim_jobs(
                    conn,
                    await self.machine.scheduling_context(conn),
                    worker=self._worker,
                    runner=self._runner.name,
                    lease=self._lease,
                )
            for job_id in claimed:
                self._held[job_id] = asyncio.Event()
        return claimed

    async def _has_plan(self, reader: Reader, *, notify: bool) -> bool:
        context = await self.machine.scheduling_context(reader)
        return bool(await make_plan(reader, context, notify=notify))

    def _wake(self, job_id: str) -> None:
        if (wake := self._held.get(job_id)) is not None:
            wake.set()

    async def _claim_loop(self) -> None:
        with self._database.subscribe(DUE_JOBS) as changes:
            self._changes = changes
            await retry(lambda: self._claim_until_stopped(changes), log_failure=log_failure)

    async def _claim_until_stopped(self, changes: Subscription) -> None:
        # From here on the other machines leave what begins here alone.
        await self.machine.renew()
        while not self._stopping:
            begun = monotonic()
            claimed = await self.claim(notify=self._are_queue_messages_due())
            self._start_steps(claimed)
            await self._handle_cancels()
            ended = monotonic()
            # A claim takes a part of a long queue: there may be more.
            if not claimed:
                await changes.wait(timeout=await self._seconds_until_due())
            rest = min(ended - begun, _LONGEST_REST_SECONDS)
            await asyncio.sleep(max(0, ended + rest - monotonic()))

    def _are_queue_messages_due(self) -> bool:
        """Tell whether to write the place in the queue: not each time that it moves."""
        if monotonic() - self._queue_messages_at < _QUEUE_MESSAGE_SECONDS:
            return False
        self._queue_messages_at = monotonic()
        return True

    async def _seconds_until_due(self) -> float:
        now = micros()
        async with self._database.read() as conn:
            due = await store.next_due_after(conn, now)
        return self._poll if due is None else min(self._poll, (due - now) / 1_000_000)

    async def _handle_cancels(self) -> None:
        if self._held:
            async with self._database.read() as conn:
                canceled = await store.list_canceled(conn, worker=self._worker)
            for job_id in canceled:
                self._wake(job_id)

    def _start_steps(self, claimed: Iterable[str]) -> None:
        for job_id in claimed:
            task = asyncio.create_task(self._step_loop(job_id), name=f"job-{job_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _step_loop(self, job_id: str) -> None:
        wake = self._held[job_id]
        await retry(lambda: self._step_until_released(job_id, wake), log_failure=log_failure)
        # While the last attempt was cleared away the job may have been claimed for the next one.
        if self._held.get(job_id) is wake:
            del self._held[job_id]

    async def _step_until_released(self, job_id: str, wake: asyncio.Event) -> None:
        while not self._stopping:
            wake.clear()
            seconds = await self._stepper.step(job_id)
            if seconds is None:
                return
            if seconds and not self._stopping:
                await _wait_for_wake(wake, seconds)

    async def _handle_hints(self) -> None:
        async for handle in self._runner.watch():
            if (job_id := self._stepper.jobs_by_handle.get(handle)) is not None:
                self._wake(job_id)

    async def _repeat(self, work: Callable[[], Awaitable[None]], pause: float) -> None:
        async def loop() -> None:
            while not self._stopping:
                await work()
                await asyncio.sleep(pause)

        await retry(loop, log_failure=log_failure, seconds=pause)


async def _wait_for_wake(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return


def log_failure(error: BaseException) -> None:
    if isinstance(error, DatabaseUnavailable):
        log.warning("jobs wait for the database", reason=error.reason)
    else:
        log.error("looking after jobs stumbled", exc_info=error)
