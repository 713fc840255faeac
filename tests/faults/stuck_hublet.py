"""The command `hublet` with a worker that claims reactions to revoked tokens and never runs them."""

import asyncio

from hublet.cli import main
from hublet.core.queue.lanes import QuickLane
from hublet.core.queue.tasks import Task

_run_together = QuickLane._run_together  # noqa: SLF001 - the moment between claim and work


async def _never_react(lane: QuickLane, tasks: list[Task]) -> None:
    if any(task.kind.endswith("record_revocation") for task in tasks):
        await asyncio.Event().wait()
    await _run_together(lane, tasks)


if __name__ == "__main__":
    QuickLane._run_together = _never_react  # type: ignore[assignment, method-assign] # noqa: SLF001
    main()
