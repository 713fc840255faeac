"""What a job uses, second by second, for somebody who watches it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.jobs.metrics import service, store
from hublet.jobs.metrics.service import Meter
from hublet.jobs.records import Stage

KEEP_ALIVE_SECONDS = 30.0
_PERIOD_SECONDS = 1.0


async def follow(
    database: Database,
    job_id: str,
    *,
    meter: Meter,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield a measurement each second while the job runs, until it is over.

    The access is looked at again now and then; without it the stream ends, and whoever comes
    back hears why.
    """
    try:
        async for piece in _follow(database, job_id, meter, check_access, stopping):
            yield piece
    except HubError:
        return


async def _follow(
    database: Database,
    job_id: str,
    meter: Meter,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    alive_at = monotonic()
    while not stopping.is_set():
        began_at = monotonic()
        async with database.read() as conn:
            job = await store.find(conn, job_id)
        if job is None or job.stage.is_terminal:
            return
        if job.stage is Stage.running:
            metric = await service.measure(job, database.hub.settings, meter)
            yield f"event: metric\ndata: {metric.model_dump_json()}\n\n"
        if monotonic() >= alive_at + KEEP_ALIVE_SECONDS:
            await check_access()
            yield ": keep-alive\n\n"
            alive_at = monotonic()
        await asyncio.sleep(max(0.0, began_at + _PERIOD_SECONDS - monotonic()))
