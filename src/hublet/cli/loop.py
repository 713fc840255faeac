"""Running asynchronous work from a command."""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on uvloop where it exists, else on the standard loop."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
