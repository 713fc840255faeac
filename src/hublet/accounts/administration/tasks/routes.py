"""HTTP for tasks that failed too often and wait for an administrator."""

from pydantic import MISSING

from hublet.accounts.administration.tasks.schemas import (
    ParkedTaskCard,
    RetriedTasks,
    RetryTasks,
)
from hublet.core import queue
from hublet.core.http import Conn, ReadConn, Router
from hublet.tokens.auth import Administrator

router = Router(prefix="/api/admin/tasks", tags=["administration"])


@router.get("")
async def list_parked_tasks(conn: ReadConn, _caller: Administrator) -> list[ParkedTaskCard]:
    """List the first hundred tasks that failed too often and were parked, oldest first."""
    return [ParkedTaskCard.of(task) for task in await queue.list_parked(conn)]


@router.post("/retry")
async def retry_parked_tasks(conn: Conn, _caller: Administrator, body: RetryTasks) -> RetriedTasks:
    """Give one parked task, or all of them, a fresh start; tell how many there were."""
    task_id = None if body.id is MISSING else body.id
    return RetriedTasks(count=await queue.retry_parked(conn, task_id=task_id))
