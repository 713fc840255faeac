"""Lifecycle of the supervisor in a worker: it starts with the first job, on the chosen runner."""

import asyncio

from hublet.core.database import Connection, Database
from hublet.core.logs import get_logger
from hublet.core.retries import retry
from hublet.jobs.records import JOBS
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import lease_store
from hublet.runtime.supervisor.runner_selection import NullRunner, choose_runner
from hublet.runtime.supervisor.supervisor import Supervisor, log_failure

log = get_logger("jobs")

# How often to look whether a runner that could not be used can be by now.
_RETRY_SECONDS = 30.0


class SupervisorLifecycle:
    """What a worker does for jobs: nothing until the first, then a Supervisor with a runner."""

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._poll = database.hub.settings.worker.poll_seconds
        self._choosing: asyncio.Task[None] | None = None
        self._overseer: Supervisor | None = None

    def start(self) -> None:
        self._choosing = asyncio.create_task(
            retry(self._choose_a_runner, log_failure=log_failure, seconds=_RETRY_SECONDS),
            name="jobs-choosing",
        )

    async def finish(self) -> None:
        """Take nothing more; attempts that run go on by themselves."""
        await self._choose_no_more()
        if self._overseer is not None:
            await self._overseer.finish()

    async def abandon(self) -> None:
        # Without any grace, nothing may have been finished.
        await self._choose_no_more()
        if self._overseer is not None:
            await self._overseer.abandon()

    async def _choose_no_more(self) -> None:
        if self._choosing is not None:
            self._choosing.cancel()
            await asyncio.gather(self._choosing, return_exceptions=True)

    async def end_all(self) -> None:
        """End every attempt there is, at once; nothing is written of it. Only for tests."""
        if self._overseer is not None:
            await self._overseer.end_all()

    async def hand_back(self, conn: Connection) -> int:
        """Make everything this worker holds due for others; return how many."""
        return await release_jobs(conn, worker=self._worker)

    async def extend_leases(self) -> None:
        """Extend the leases when it is time to; to be called every few seconds."""
        if self._overseer is not None:
            await self._overseer.leases.extend_when_due()

    async def _choose_a_runner(self) -> None:
        await self._wait_for_work()
        while not await self._begin():
            await asyncio.sleep(_RETRY_SECONDS)
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        with self._database.subscribe(JOBS) as bell:
            while True:
                async with self._database.read() as conn:
                    if await lease_store.has_work(conn):
                        return
                await bell.wait(timeout=self._poll)

    async def _begin(self) -> bool:
        """Begin with the runner of the settings; False when only something stands in for it."""
        choice = await choose_runner(self._database.hub.settings)
        if choice.runner is not None and choice.ability.usable:
            await self._oversee(choice.runner)
            return True
        if self._overseer is None:
            log.error("jobs wait: no runner can be used", reason=choice.ability.sentence)
            await self._oversee(NullRunner(choice.ability))
        return False

    async def _oversee(self, runner: Runner) -> None:
        if self._overseer is not None:
            await self._overseer.finish()
            await self._overseer.abandon()
            async with self._database.transaction() as conn:
                await self.hand_back(conn)
        log.info("looking after jobs", runner=runner.name)
        self._overseer = Supervisor(self._database, self._worker, runner)
        self._overseer.start()


async def release_jobs(conn: Connection, *, worker: str) -> int:
    """Make everything that a stopping or dead worker held due at once; return how many."""
    return await lease_store.release(conn, worker=worker)
