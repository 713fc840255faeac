"""Retry loop: log the failure, wait, try again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

RETRY_SECONDS = 0.5


async def retry(
    work: Callable[[], Awaitable[T]],
    *,
    log_failure: Callable[[BaseException], None],
    seconds: float = RETRY_SECONDS,
    on: type[BaseException] | tuple[type[BaseException], ...] = (Exception, asyncio.CancelledError),
) -> T:
    """Run work until it succeeds, with a pause after each failure.

    For the loop of a worker, `work` is the whole loop: it returns when the worker stops, and
    begins anew after a failure. Only the cancellation of the running task is never retried.
    """
    while True:
        try:
            return await work()
        except on as error:
            if is_being_cancelled():
                raise
            log_failure(error)
        await asyncio.sleep(seconds)


def is_being_cancelled() -> bool:
    """Tell whether the running task itself was asked to end.

    Awaiting a future that was cancelled raises CancelledError too, and is then an error
    like any other: taken for the end of a loop, it would end it for good.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
