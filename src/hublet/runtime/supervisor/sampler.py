"""Sampler of usage: keeps what each attempt of a worker uses, also while nobody looks."""

import asyncio
from collections.abc import Mapping

from hublet.core.clock import micros, monotonic
from hublet.core.database import Database
from hublet.core.logs import get_logger
from hublet.jobs import store
from hublet.jobs.metrics import (
    PERIOD_SECONDS,
    UsageLimits,
    append_sample,
    flavor_size,
    history_path,
)
from hublet.runtime.records import Runner
from hublet.runtime.supervisor import runner_calls

log = get_logger("jobs")

# An engine such as Docker takes a second for each; a runner of this machine less than a millisecond.
_MOST_AT_ONCE = 16


class UsageSampler:
    """Samples the attempts of one Supervisor: `jobs_by_handle` has those that it observes."""

    def __init__(
        self, database: Database, runner: Runner, jobs_by_handle: Mapping[str, str]
    ) -> None:
        self._database = database
        self._runner = runner
        self._jobs_by_handle = jobs_by_handle
        self._data_dir = database.hub.settings.database.data_dir
        self._room = asyncio.Semaphore(_MOST_AT_ONCE)
        # By the id of a job; they stay what they were when it began.
        self._limits: dict[str, UsageLimits] = {}

    async def run(self) -> None:
        """Take a sample of every attempt in each period, until it is cancelled."""
        due = monotonic()
        while True:
            await self.sample()
            # After a pause of the machine there is no sample for each period that it missed.
            due = max(due + PERIOD_SECONDS, monotonic())
            await asyncio.sleep(due - monotonic())

    async def sample(self) -> None:
        """Keep what every attempt uses now."""
        attempts = dict(self._jobs_by_handle)
        jobs = set(attempts.values())
        self._limits = {each: limits for each, limits in self._limits.items() if each in jobs}
        await asyncio.gather(*(self._sample(*each) for each in attempts.items()))

    async def _sample(self, handle: str, job_id: str) -> None:
        async with self._room:
            usage = await runner_calls.usage(self._runner, handle)
        if usage is None or (limits := await self._limits_of(job_id)) is None:
            return
        path = history_path(self._data_dir, job_id)
        try:
            await asyncio.to_thread(append_sample, path, usage, limits, at=micros())
        except FileNotFoundError:
            # The job was deleted meanwhile.
            return
        except OSError as error:
            log.warning("the usage of a job was not kept", job=job_id, error=str(error))

    async def _limits_of(self, job_id: str) -> UsageLimits | None:
        if job_id not in self._limits:
            async with self._database.read() as conn:
                job = await store.find_measured_attempt(conn, job_id)
            if job is None:
                return None
            size = flavor_size(job.flavor, self._database.hub.settings)
            self._limits[job_id] = UsageLimits(
                cpu_millicores=max(1, round(size.cores * 1000)),
                memory_bytes=max(1, size.memory_bytes),
            )
        return self._limits[job_id]
