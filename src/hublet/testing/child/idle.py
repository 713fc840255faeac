"""Idle hub: waits until no work is due, and moves the clock from one due time to the next."""

import asyncio
from datetime import timedelta

from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.runtime.supervisor import store as jobs
from hublet.testing.child import store
from hublet.testing.child.hubs import RunningHub
from hublet.webhooks.delivery import lanes_store as lanes

_PAUSE_SECONDS = 0.002
# A task that schedules itself again and again must not block a test for ever.
_MAX_STEPS = 1000


class StillBusy(Exception):
    """The worker does not become idle; the message is a sentence for the test."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The hub's worker was still busy after {seconds:g} seconds: a receiver may be slow "
            "to answer, or wait for the very test that waits here."
        )


async def settle(hub: RunningHub, *, seconds: float) -> None:
    """Wait until all due work is done: events, tasks, deliveries. Jobs are not waited for."""
    try:
        async with asyncio.timeout(seconds):
            await _settle(hub)
    except TimeoutError:
        raise StillBusy(seconds) from None


async def _settle(hub: RunningHub) -> None:
    while await _is_busy(hub.database):  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(_PAUSE_SECONDS)


async def _is_busy(database: Database) -> bool:
    async with database.read() as conn:
        return await store.is_busy(conn)


async def forward(hub: RunningHub, by: timedelta, *, seconds: float) -> None:
    """Move the clock from one due moment to the next, as if the time had really passed.

    The hub's housekeeping runs only once for the whole time, not once a day.
    """
    await settle(hub, seconds=seconds)
    goal = micros() + by // timedelta(microseconds=1)
    for _ in range(_MAX_STEPS):
        at = await _next_due(hub)
        if at is None or at > goal:
            break
        await _move_to(hub, at, seconds=seconds)
    await _move_to(hub, goal, seconds=seconds)


async def jump(hub: RunningHub, by: timedelta, *, seconds: float) -> None:
    """Move the clock at once, also backwards."""
    hub.move_clock(by)
    await settle(hub, seconds=seconds)


async def _move_to(hub: RunningHub, at: int, *, seconds: float) -> None:
    by = timedelta(microseconds=max(0, at - micros()))
    await jump(hub, by, seconds=seconds)


async def _next_due(hub: RunningHub) -> int | None:
    async with hub.database.read() as conn:
        due_times = (
            await store.next_task_at(conn, except_for=hub.housekeeping),
            await lanes.next_due(conn, except_for=()),
            await jobs.next_due_after(conn, micros()),
        )
    return min((at for at in due_times if at is not None), default=None)
