"""Event stream of a job: each stage and message, as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.jobs import store
from hublet.jobs.records import JOBS, StageEvent
from hublet.jobs.schemas import JobEvent

KEEP_ALIVE_SECONDS = 30.0
# The channel rings for every job; so often at most this one is looked at.
_LEAST_PAUSE_SECONDS = 0.1
_STOP_LOOK_SECONDS = 1.0


async def follow_events(
    database: Database,
    job_id: str,
    *,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield everything that happened to a job, then what happens, until it is over.

    The access is looked at again with each sign of life; without it the stream ends, and whoever
    comes back hears why.
    """
    try:
        async for piece in _follow(database, job_id, check_access, stopping):
            yield piece
    except HubError:
        return


async def _follow(
    database: Database,
    job_id: str,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    told, spoke_at = set[str](), monotonic()
    with database.subscribe(JOBS) as bell:
        while not stopping.is_set():
            async with database.read() as conn:
                happenings = await store.list_events(conn, job_id)
            for happening in happenings:
                if happening.id not in told:
                    yield _event(happening)
                    told.add(happening.id)
                    spoke_at = monotonic()
            if any(happening.stage.is_terminal for happening in happenings):
                return
            if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
                await check_access()
                yield ": keep-alive\n\n"
                spoke_at = monotonic()
            await bell.wait(timeout=_STOP_LOOK_SECONDS)
            await asyncio.sleep(_LEAST_PAUSE_SECONDS)


def _event(happening: StageEvent) -> str:
    return (
        f"event: status\nid: {happening.id}\ndata: {JobEvent.of(happening).model_dump_json()}\n\n"
    )
