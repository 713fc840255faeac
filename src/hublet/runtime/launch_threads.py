"""Thread pool for launches: copying volumes and unpacking images, which may take minutes.

These threads are apart from those that everything else shares, so that slow launches delay
launches alone.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_THREADS = 8
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="launch")


async def run_in_launch_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run blocking work; a caller that is cancelled meanwhile waits until it is done."""
    done = asyncio.get_running_loop().run_in_executor(_pool, lambda: work(*args, **kwargs))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.gather(done, return_exceptions=True)
        raise


async def run_abandonable(work: Callable[..., _T], *args: Any) -> _T:
    """Run long blocking work; its last argument is an event, set when the caller is cancelled."""
    abandoned = Event()
    working = asyncio.ensure_future(run_in_launch_thread(work, *args, abandoned))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        abandoned.set()
        # Awaited, so that its exception is retrieved.
        await asyncio.gather(working, return_exceptions=True)
        raise
