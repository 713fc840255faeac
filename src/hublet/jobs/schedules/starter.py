"""Starter of scheduled jobs: one job for each due time, however many workers there are."""

from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Database, DatabaseUnavailable
from hublet.core.errors import HubError
from hublet.core.logs import get_logger
from hublet.jobs.access import get_delegated_access
from hublet.jobs.request_schemas import or_none
from hublet.jobs.requests import check_commits
from hublet.jobs.schedules import service, store
from hublet.jobs.schedules.cron import next_after
from hublet.jobs.schedules.records import ScheduledJobRecord

log = get_logger("jobs")

_FAILED = "The hub could not start the job; the log of the hub says why."


async def start_due(database: Database, scheduled_job_id: str, *, due_at: int) -> None:
    """Start the job that is due at a time, unless another worker did or it is not due any more.

    A job that cannot start is skipped with the reason, and runs the next time.
    """
    async with database.read() as conn:
        scheduled = await store.find_due(conn, scheduled_job_id, at=due_at)
    if scheduled is None:
        return
    try:
        await _run(database, scheduled)
    except DatabaseUnavailable:
        raise
    except HubError as error:
        await _skip(database, scheduled, error.message)
    except Exception:
        # Retried, it would fail again, and the schedule would never run any more.
        log.exception("scheduled job not started", scheduled_job=scheduled.id)
        await _skip(database, scheduled, _FAILED)


async def _run(database: Database, scheduled: ScheduledJobRecord) -> None:
    async with database.read() as conn:
        access = await get_delegated_access(conn, scheduled.delegation, scheduled.owner_id)
    await check_commits(database, access.caller, or_none(scheduled.request.volumes) or ())
    key = f"schedule:{scheduled.id}:{to_micros(scheduled.next_run_at)}"
    async with database.transaction() as conn:
        if await _advance(conn, scheduled):
            await service.run(conn, access, scheduled, key=key)


async def _skip(database: Database, scheduled: ScheduledJobRecord, reason: str) -> None:
    async with database.transaction() as conn:
        if await _advance(conn, scheduled):
            await store.set_last_skip(conn, scheduled.id, reason)


async def _advance(conn: Connection, scheduled: ScheduledJobRecord) -> bool:
    """Set the next run in the future: one job makes up for all runs that were missed."""
    # A clock that was set back must not make the same run due again.
    due = next_after(scheduled.schedule, max(now(), scheduled.next_run_at))
    if not await store.advance(conn, scheduled, to=due):
        return False
    await service.add_start_task(conn, scheduled.id, at=due)
    return True
