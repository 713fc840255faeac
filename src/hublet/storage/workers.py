"""Worker processes for what takes a processor: verification, cutting. Threads would wait for each other."""

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from hublet.core.errors import Unavailable
from hublet.core.logs import get_logger

log = get_logger("storage")

_INTERRUPTED = "The processing of this content was interrupted; send it again."

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerProcesses:
    """Processes that are started when first needed.

    Whoever reads gigabytes has other processes than whoever reads a xorb, and does not hold it up.
    """

    def __init__(self) -> None:
        count = len(os.sched_getaffinity(0))
        self._counts = {False: count, True: max(count // 2, 1)}
        self._pools: dict[bool, ProcessPoolExecutor] = {}

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run what takes a second at most; raise Unavailable when its process is killed."""
        return await self._run(function, args, kwargs, is_long=False)

    async def run_long(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run what may take minutes."""
        return await self._run(function, args, kwargs, is_long=True)

    async def _run(
        self, function: Callable[..., _T], args: Any, kwargs: Any, *, is_long: bool
    ) -> _T:
        if is_long not in self._pools:
            self._pools[is_long] = _new_pool(self._counts[is_long])
        pool = self._pools[is_long]
        try:
            # The first call waits for a process to start.
            call: Future[_T] = await asyncio.to_thread(pool.submit, function, *args, **kwargs)
            return await asyncio.wrap_future(call)
        except BrokenProcessPool:
            # A process was killed, perhaps for want of memory; the next call gets new ones.
            log.warning("worker processes broken", function=function.__name__)
            if self._pools.get(is_long) is pool:
                del self._pools[is_long]
            pool.shutdown(wait=False)
            raise Unavailable(_INTERRUPTED) from None

    async def stop(self) -> None:
        """End them at once: what they do is not acknowledged yet, and is done again."""
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            for process in list((pool._processes or {}).values()):  # noqa: SLF001 - no public way
                process.terminate()
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)


# Those of this process: one hub needs no more of them, however many parts use them.
processes = WorkerProcesses()


def _new_pool(count: int) -> ProcessPoolExecutor:
    context = get_context("forkserver")
    # What the workers need is imported once, and shared by all of them.
    context.set_forkserver_preload(["__main__", "hublet.storage.shard_verification"])
    return ProcessPoolExecutor(count, mp_context=context, initializer=_follow_parent)


def _follow_parent() -> None:
    """End with the process that started this one, however that ends; leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
