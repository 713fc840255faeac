"""Launcher of attempts: prepares volumes and image, and hands the order to the runner.

Each launch is a task of its own, so that a slow volume or pull delays no other job.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.tracing import is_on, span
from hublet.jobs import hardware, service
from hublet.jobs import store as jobs_store
from hublet.jobs.errors import SecretsGone
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.records import JobRecord, Observation
from hublet.runtime import attempt_processes
from hublet.runtime.attempt_folder import read_status
from hublet.runtime.errors import CannotRun
from hublet.runtime.images.pulls import ImagePuller
from hublet.runtime.records import LaunchOrder, Runner
from hublet.runtime.sandbox import runner as sandbox_runner
from hublet.runtime.sandbox import shim_runner
from hublet.runtime.supervisor.environment import environment_of, group_of
from hublet.runtime.supervisor.log_shipper import LogShipper
from hublet.runtime.supervisor.records import AttemptRecord
from hublet.runtime.volumes.preparation import prepare
from hublet.runtime.volumes.records import PreparedAttempt

# How long to wait for the end of a launch that was cancelled.
_PATIENCE_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class AttemptLaunch:
    """One attempt on its way to the runner; the result of the task is how it was seen then."""

    attempt: AttemptRecord
    task: asyncio.Task[Observation] | None = None
    # Whether the runner was asked to launch it: from then on there may be something to stop.
    is_ordered: bool = False
    # Whether somebody waits for the result right now, and needs no notification.
    is_awaited: bool = False


class Launcher:
    """The launches of one Supervisor; `done` is called with the job of each that has ended.

    `record` writes the handle of an attempt that the runner has, and returns how it was seen.
    """

    def __init__(
        self,
        database: Database,
        runner: Runner,
        logs: LogShipper,
        *,
        record: Callable[[JobRecord, AttemptLaunch, str], Awaitable[Observation]],
        done: Callable[[str], None],
    ) -> None:
        self._database = database
        self._runner = runner
        self._logs = logs
        self._record = record
        self._done = done
        self._images = ImagePuller(database)
        self._launches: dict[str, AttemptLaunch] = {}
        # Cancelled, and not yet at their end.
        self._cancelled: dict[str, AttemptLaunch] = {}

    def find(self, job_id: str) -> AttemptLaunch | None:
        return self._launches.get(job_id)

    def is_repeated(self, job_id: str) -> bool:
        """Tell whether an attempt that the runner has is being launched again."""
        launch = self._launches.get(job_id)
        return launch is not None and bool(launch.attempt.handle)

    async def result(
        self, job: JobRecord, attempt: AttemptRecord, *, seconds: float
    ) -> Observation | None:
        """Return what was observed, or None while the launch goes on; raise what made it fail.

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

    def _begin(self, job: JobRecord, attempt: AttemptRecord) -> AttemptLaunch:
        launch = AttemptLaunch(attempt=attempt)
        launch.task = asyncio.create_task(self._launch(job, launch), name=f"launch-{job.id}")
        launch.task.add_done_callback(lambda task: self._ended(job.id, launch, task))
        self._launches[job.id] = launch
        return launch

    async def _launch(self, job: JobRecord, launch: AttemptLaunch) -> Observation:
        attempt = launch.attempt
        folder = attempt_folder(self._database.hub.settings, attempt)
        with span(
            "job attempt",
            parent=await self._trace_of(job),
            job=job.id,
            attempt=attempt.number,
            runner=self._runner.name,
        ):
            prepared = await prepare(self._database, job, folder=folder)
            await self._logs.begin(job.id, attempt.number)
            log = self._logs.path_of(job.id, attempt.number)
            order = await _order_of(self._database, job, attempt, prepared, log=log)
            order = await self._with_image(job, order)
            launch.is_ordered = True
            handle = await self._runner.launch(order)
        return await self._record(job, launch, handle)

    async def _with_image(self, job: JobRecord, order: LaunchOrder) -> LaunchOrder:
        """Pull the image of an attempt, or give the engine that does what it needs for that."""
        is_space = order.content is not None
        if self._runner.name == sandbox_runner.NAME:
            # What the pull tells is read while it goes on.
            self._logs.follow(job.id, order.number)
            digest = await self._images.pull(
                job, order.image, is_space=is_space, log_path=order.log
            )
            return replace(order, image_digest=digest)
        if self._runner.name == shim_runner.NAME or is_space:
            return order
        found = await self._images.find_engine_image(job, order.image)
        return order if found is None else replace(order, image=found[0], image_login=found[1])

    async def _trace_of(self, job: JobRecord) -> str | None:
        if not is_on():
            return None
        async with self._database.read() as conn:
            return await jobs_store.find_trace(conn, job.id)

    def _ended(self, job_id: str, launch: AttemptLaunch, task: asyncio.Task[Observation]) -> None:
        if not task.cancelled():
            # Nobody may ask for the result any more; asyncio would warn of that.
            task.exception()
        if not launch.is_awaited:
            self._done(job_id)

    async def cancel(self, job_id: str) -> None:
        """Cancel the launch of a job, if there is one."""
        launch = self._launches.pop(job_id, None)
        if launch is not None and launch.task is not None:
            launch.task.cancel()
            self._cancelled[job_id] = launch
            launch.task.add_done_callback(lambda _: self._cancelled.pop(job_id, None))
            await asyncio.wait([launch.task], timeout=_PATIENCE_SECONDS)

    async def clear_away(self, attempt: AttemptRecord) -> None:
        """Remove what was prepared for an attempt that never began, once nobody prepares it.

        What the runner was ordered may have begun after all; no job has it then, so `Cleanup`
        stops it.
        """
        launch = self._cancelled.get(attempt.job_id)
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
        """Let a launch go on without its job: its handle is written, and cleared away later."""
        self._launches.pop(job_id, None)

    async def tidy_up(self) -> None:
        await self._images.tidy_up()

    async def abandon(self) -> None:
        await asyncio.gather(*map(self.cancel, list(self._launches)))
        await self._images.close()


def attempt_folder(settings: Settings, attempt: AttemptRecord) -> Path:
    folder = job_folder(settings.database.data_dir, attempt.job_id)
    # Absolute, because other processes start in other folders.
    return folder.absolute() / f"attempt-{attempt.number}"


async def _order_of(
    database: Database,
    job: JobRecord,
    attempt: AttemptRecord,
    prepared: PreparedAttempt,
    *,
    log: Path,
) -> LaunchOrder:
    """Return the order for an attempt: image, command, environment, limits and mounts."""
    settings = database.hub.settings
    size = hardware.offered_flavors(settings).get(job.spec.flavor)
    if size is None:
        raise CannotRun(f"this hub does not offer {job.spec.flavor} any more")
    async with database.read() as conn:
        try:
            secrets = await service.secrets_of(conn, job) if job.secret_names else {}
        except SecretsGone:
            raise CannotRun("its secrets are gone") from None
    return LaunchOrder(
        job_id=job.id,
        number=attempt.number,
        folder=attempt_folder(settings, attempt),
        log=log,
        image=prepared.image,
        content=prepared.content,
        argv=prepared.argv,
        after_entrypoint=job.spec.space is None and job.spec.command is None,
        environment=environment_of(job, size, secrets=secrets, base_url=settings.base_url),
        cores=size.cores,
        memory_bytes=size.memory_bytes,
        timeout_seconds=job.spec.timeout_seconds or settings.jobs.timeout_seconds,
        grace_seconds=settings.jobs.grace_seconds,
        log_bytes=settings.jobs.log_bytes,
        binds=prepared.binds,
        devices=hardware.devices_of(job.spec.flavor, settings),
        gpus=size.gpus,
        node_labels=size.node_labels,
        hostname=job.id,
        group=group_of(job),
    )
