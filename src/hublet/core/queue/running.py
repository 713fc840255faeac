"""What both lanes need to run a task: its handler, and words for its failure."""

from contextlib import suppress

from hublet.core.database import Connection, DatabaseUnavailable
from hublet.core.logs import get_logger, redact_text
from hublet.core.queue.handlers import Handler, handlers
from hublet.core.queue.leases import fail
from hublet.core.queue.tasks import Task

log = get_logger("worker")

# The text of an error may be as long as what it complains about.
_ERROR_CHARACTERS = 2000


def handler_of(task: Task, *, max_attempts: int) -> Handler:
    if task.attempts > max_attempts:
        raise RuntimeError("The worker died each time it ran this task.")
    if (handler := handlers.get(task.kind)) is None:
        raise LookupError(f"This version has no handler for {task.kind}.")
    return handler


async def write_failure(
    conn: Connection, task: Task, error: BaseException, *, max_attempts: int, broke: bool = False
) -> None:
    text = _in_words(error)
    log.warning("task failed", task=task.id, kind=task.kind, error=text, exc_info=error)
    await fail(conn, task, error=text, max_attempts=max_attempts, broke=broke)


def _in_words(error: BaseException) -> str:
    # An error that cannot even be printed must not take its neighbours along.
    with suppress(Exception):
        told = error.reason if isinstance(error, DatabaseUnavailable) else str(error)
        return redact_text(f"{type(error).__name__}: {told}"[:_ERROR_CHARACTERS])
    return type(error).__name__


def tell(error: BaseException) -> None:
    """Log what went wrong in the worker itself."""
    if isinstance(error, DatabaseUnavailable):
        log.warning("database unavailable", reason=error.reason)
    else:
        log.error("the worker stumbled", exc_info=error)


def tell_lost(task: Task) -> None:
    log.warning("lease lost", task=task.id, kind=task.kind)
