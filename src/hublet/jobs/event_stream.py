"""Event stream of a job: each stage and message, as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator

from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.http.event_streams import CheckAccess
from hublet.jobs import store
from hublet.jobs.records import JOBS, StageEvent
from hublet.jobs.schemas import JobEvent

KEEP_ALIVE_SECONDS = 30.0
# The channel wakes for every job; so often at most this one is read.
_LEAST_PAUSE_SECONDS = 0.1
_STOP_LOOK_SECONDS = 1.0


async def follow_events(
    database: Database, job_id: str, *, check_access: CheckAccess, stopping: asyncio.Event
) -> AsyncGenerator[str]:
    """Yield every event of a job so far, then those that come, until the job is over.

    The access is checked with each keep-alive.
    """
    sent, spoke_at = set[str](), monotonic()
    with database.subscribe(JOBS) as changes:
        while not stopping.is_set():
            async with database.read() as conn:
                events = await store.list_events(conn, job_id)
            for event in events:
                if event.id not in sent:
                    yield _event(event)
                    sent.add(event.id)
                    spoke_at = monotonic()
            if any(event.stage.is_terminal for event in events):
                return
            if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
                await check_access()
                yield ": keep-alive\n\n"
                spoke_at = monotonic()
            await changes.wait(timeout=_STOP_LOOK_SECONDS)
            await asyncio.sleep(_LEAST_PAUSE_SECONDS)


def _event(event: StageEvent) -> str:
    return f"event: status\nid: {event.id}\ndata: {JobEvent.of(event).model_dump_json()}\n\n"
