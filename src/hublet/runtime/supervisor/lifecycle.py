"""Lifecycle of the supervisor in a worker: it starts with the first job, on the hub's runner."""

import asyncio

from hublet.core.database import Connection, Database
from hublet.core.logs import get_logger
from hublet.core.retries import retry
from hublet.jobs.records import DUE_JOBS
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.runner_selection import NullRunner, choose_runner
from hublet.runtime.supervisor.supervisor import Supervisor, log_failure

log = get_logger("jobs")

# How often a runner that could not be used is probed again.
_RETRY_SECONDS = 30.0


class SupervisorLifecycle:
    """The Supervisor of a worker: none until there is a job, then one with the selected runner."""

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._poll = database.hub.settings.worker.poll_seconds
        self._selection: asyncio.Task[None] | None = None
        self._supervisor: Supervisor | None = None

    def start(self) -> None:
        self._selection = asyncio.create_task(
            retry(self._select_runner, log_failure=log_failure, seconds=_RETRY_SECONDS),
            name="jobs-choosing",
        )

    async def finish(self) -> None:
        """Claim nothing more; attempts that run go on by themselves."""
        await self._stop_selection()
        if self._supervisor is not None:
            await self._supervisor.finish()

    async def abandon(self) -> None:
        # Without any grace, nothing may have been finished.
        await self._stop_selection()
        if self._supervisor is not None:
            await self._supervisor.abandon()

    async def _stop_selection(self) -> None:
        if self._selection is not None:
            self._selection.cancel()
            await asyncio.gather(self._selection, return_exceptions=True)

    async def end_all(self) -> None:
        """Stop every attempt at once, and write nothing of that. Only for tests."""
        if self._supervisor is not None:
            await self._supervisor.end_all()

    async def hand_back(self, conn: Connection) -> int:
        """Make everything this worker has claimed due for others; return how much."""
        return await release_jobs(conn, worker=self._worker)

    async def extend_leases(self) -> None:
        """Extend the leases when it is time to; to be called every few seconds."""
        if self._supervisor is not None:
            await self._supervisor.machine.renew_when_due()
            await self._supervisor.leases.extend_when_due()

    async def _select_runner(self) -> None:
        await self._wait_for_work()
        while not await self._start_supervisor():
            await asyncio.sleep(_RETRY_SECONDS)
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        with self._database.subscribe(DUE_JOBS) as changes:
            while True:
                async with self._database.read() as conn:
                    if await store.has_work(conn):
                        return
                await changes.wait(timeout=self._poll)

    async def _start_supervisor(self) -> bool:
        """Start with the runner of the settings; False when only a null runner could be used."""
        choice = await choose_runner(self._database.hub.settings)
        if choice.runner is not None and choice.capabilities.usable:
            await self._supervise(choice.runner)
            return True
        if self._supervisor is None:
            log.error("jobs wait: no runner can be used", reason=choice.capabilities.sentence)
            await self._supervise(NullRunner(choice.capabilities))
        return False

    async def _supervise(self, runner: Runner) -> None:
        if self._supervisor is not None:
            await self._supervisor.finish()
            await self._supervisor.abandon()
            async with self._database.transaction() as conn:
                await self.hand_back(conn)
        log.info("looking after jobs", runner=runner.name)
        self._supervisor = Supervisor(self._database, self._worker, runner)
        self._supervisor.start()


async def release_jobs(conn: Connection, *, worker: str) -> int:
    """Make everything that a stopping or dead worker had claimed due at once; return how much."""
    return await store.release(conn, worker=worker)
