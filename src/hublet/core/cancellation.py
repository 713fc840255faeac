"""Cancellation: tells a task that is being cancelled from work that raised the same error."""

import asyncio


def is_being_cancelled() -> bool:
    """Tell whether somebody asked the running task to end.

    Awaiting a future that was cancelled raises CancelledError too, and is then an error
    like any other: taken for the end of a loop, it would end it for good.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
