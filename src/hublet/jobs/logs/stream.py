"""Log stream of a job: the lines there are, then those that come, until the job is over."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

from hublet.core.clock import monotonic
from hublet.core.errors import HubError
from hublet.core.light_dataclasses import dataclass
from hublet.jobs.logs.reader import find_tail, read_piece
from hublet.jobs.logs.watcher import Follower, LogWatcher

# The public client takes 5 silent seconds for the end of what there is, and 120 for a failure.
KEEP_ALIVE_SECONDS = 30.0
# How long a hub that stops waits for a stream at most.
_STOP_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    job_id: str
    path: Path
    # Only so many of the lines that are there already; None: all of them.
    tail: int | None
    is_over: bool
    # Whether the lines that come later are told too.
    to_the_end: bool = True


async def follow_log(
    lookout: LogWatcher,
    asked: LogRequest,
    *,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield the lines that there are, then those that come, until the job is over.

    Between two lines nothing is held but a place in the file, however slow the reader is. The
    access is looked at again now and then; without it the stream ends, and whoever comes back
    hears why.
    """
    with lookout.follow(asked.job_id) as follower:
        follower.is_over = asked.is_over
        try:
            async for piece in _follow(asked, follower, check_access, stopping):
                yield piece
        except HubError:
            return


async def _follow(
    asked: LogRequest,
    follower: Follower,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    place = 0
    if asked.tail is not None:
        place = await asyncio.to_thread(find_tail, asked.path, asked.tail)
    spoke_at = checked_at = monotonic()
    while not stopping.is_set():
        # Both before the look: whatever is written during it is told of again.
        follower.news.clear()
        is_over = follower.is_over
        piece = await asyncio.to_thread(read_piece, asked.path, place, is_over=is_over)
        place = piece.end
        if piece.events:
            yield piece.events
            spoke_at = monotonic()
        elif is_over or not asked.to_the_end:
            return
        else:
            await _pause(follower)
        if monotonic() >= checked_at + KEEP_ALIVE_SECONDS:
            await check_access()
            checked_at = monotonic()
        if monotonic() >= spoke_at + KEEP_ALIVE_SECONDS:
            yield ": keep-alive\n\n"
            spoke_at = monotonic()


async def _pause(follower: Follower) -> None:
    try:
        async with asyncio.timeout(_STOP_LOOK_SECONDS):
            await follower.news.wait()
    except TimeoutError:
        return
