"""Thread pool for launches: copying volumes and unpacking images, which may take minutes.

They are none of those that everything else shares, so that slow launches hold up launches alone.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_THREADS = 8
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="launch")


async def run_in_launch_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Do what blocks; whoever is cancelled meanwhile goes when it is done, because it goes on."""
    done = asyncio.get_running_loop().run_in_executor(_pool, lambda: work(*args, **kwargs))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        await asyncio.gather(done, return_exceptions=True)
        raise
