"""Launcher of attempts: each launch is a task of its own, so a slow volume delays no other."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from hublet.core.batching import GroupCommit
from hublet.core.database import Database
from hublet.jobs.records import JobRecord
from hublet.runtime import attempt_processes
from hublet.runtime.attempt_folder import read_status
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.orders import attempt_folder, order_of
from hublet.runtime.supervisor.records import AttemptRecord
from hublet.runtime.volumes.preparation import prepare

# How long a launch that is given up is waited for.
_PATIENCE_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class AttemptLaunch:
    """One attempt on its way to the runner; the result of the task is its handle."""

    attempt: AttemptRecord
    task: asyncio.Task[str] | None = None
    # Whether the runner was asked: from then on there may be something to stop.
    is_ordered: bool = False
    # Whether somebody waits for it right now, and need not be told.
    is_awaited: bool = False


class Launcher:
    """The launches of one Supervisor; `done` hears of each that came to an end."""

    def __init__(
        self,
        database: Database,
        runner: Runner,
        *,
        writes: GroupCommit,
        done: Callable[[str], None],
    ) -> None:
        self._database = database
        self._runner = runner
        self._writes = writes
        self._done = done
        self._launches: dict[str, AttemptLaunch] = {}
        # Given up, and not yet at their end.
        self._given_up: dict[str, AttemptLaunch] = {}

    def find(self, job_id: str) -> AttemptLaunch | None:
        return self._launches.get(job_id)

    async def result(self, job: JobRecord, attempt: AttemptRecord, *, seconds: float) -> str | None:
        """Return the handle, or None while the launch goes on; raise what made it fail.

        The first call begins the launch.
        """
        launch = self._launches.get(job.id) or self._begin(job, attempt)
        assert launch.task is not None  # noqa: S101 - set by `_begin`.
        launch.is_awaited = True
        await asyncio.wait([launch.task], timeout=seconds)
        launch.is_awaited = False
        if not launch.task.done():
            return None
        self._launches.pop(job.id, None)
        return launch.task.result()

    async def cancel(self, job_id: str) -> None:
        """Give up a launch."""
        launch = self._launches.pop(job_id, None)
        if launch is not None and launch.task is not None:
            launch.task.cancel()
            self._given_up[job_id] = launch
            launch.task.add_done_callback(lambda _: self._given_up.pop(job_id, None))
            await asyncio.wait([launch.task], timeout=_PATIENCE_SECONDS)

    async def clear_away(self, attempt: AttemptRecord) -> None:
        """Remove what was prepared for an attempt that never began, once nobody prepares it.

        What the runner was asked for may have begun after all; nobody knows of it, so `Cleanup`
        ends it.
        """
        launch = self._given_up.get(attempt.job_id)
        if launch is None or launch.task is None:
            await asyncio.to_thread(self._remove, attempt)
        elif not launch.is_ordered:
            loop = asyncio.get_running_loop()
            launch.task.add_done_callback(
                lambda _: loop.run_in_executor(None, self._remove, attempt)
            )

    def _remove(self, attempt: AttemptRecord) -> None:
        folder = attempt_folder(self._database.hub.settings, attempt)
        if read_status(folder) is None:
            attempt_processes.remove_folder(folder)

    def leave(self, job_id: str) -> None:
        """Let a launch go on without its job: its handle is kept, and cleared away later."""
        self._launches.pop(job_id, None)

    async def abandon(self) -> None:
        await asyncio.gather(*map(self.cancel, list(self._launches)))

    def _begin(self, job: JobRecord, attempt: AttemptRecord) -> AttemptLaunch:
        launch = AttemptLaunch(attempt=attempt)
        launch.task = asyncio.create_task(self._launch(job, launch), name=f"launch-{job.id}")
        launch.task.add_done_callback(lambda task: self._ended(job.id, launch, task))
        self._launches[job.id] = launch
        return launch

    def _ended(self, job_id: str, launch: AttemptLaunch, task: asyncio.Task[str]) -> None:
        if not task.cancelled():
            # Whoever left it never asks, and must not be reminded of that.
            task.exception()
        if not launch.is_awaited:
            self._done(job_id)

    async def _launch(self, job: JobRecord, launch: AttemptLaunch) -> str:
        attempt = launch.attempt
        folder = attempt_folder(self._database.hub.settings, attempt)
        prepared = await prepare(self._database, job, folder=folder)
        order = await order_of(self._database, job, attempt, prepared)
        launch.is_ordered = True
        handle = await self._runner.launch(order)
        await self._writes.run(
            lambda conn: store.set_handle(conn, attempt, handle, runner=self._runner.name)
        )
        return handle
