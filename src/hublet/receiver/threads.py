"""Thread pool for handlers that block, started before it is needed.

When `webhook_endpoint` serves, the main thread has ended: Python starts no thread any more, and its
own pools accept no work. So these threads start early and accept work until the process ends.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

_COUNT = 16


class Threads(ThreadPoolExecutor):
    """A pool that serves as default executor of an event loop, so that `asyncio.to_thread` works."""

    def __init__(self) -> None:
        super().__init__(max_workers=_COUNT)
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        for _ in range(_COUNT):
            threading.Thread(target=self._run, name="webhooks-handler", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the future raises it.
                future.set_exception(error)

        self._work.put(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the library's signature
        """End every thread after the queued work, without waiting for it."""
        for _ in range(_COUNT):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
