"""Rules of scheduled jobs: creation, changes, and runs by schedule or by hand; one job for each due time,
however many workers there are.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from hublet.accounts.errors import RoleNeeded
from hublet.accounts.records import Role
from hublet.core.clock import now, to_micros
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.errors import HubError
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.core.queue import NewTask
from hublet.core.queue import add as add_task
from hublet.jobs import requests
from hublet.jobs import service as jobs
from hublet.jobs.access import JobAccess, get_delegated_access, role_in_group
from hublet.jobs.errors import (
    LastRunGoesOn,
    NotByTheClock,
    ScheduledJobNotFound,
    TooManyScheduledJobs,
)
from hublet.jobs.records import Initiator, InitiatorType, JobRecord
from hublet.jobs.request_schemas import JobRequest, or_none
from hublet.jobs.requests import check_commits
from hublet.jobs.schedules import store
from hublet.jobs.schedules.records import ScheduledJobRecord, next_after
from hublet.jobs.schedules.schemas import CreateScheduledJob
from hublet.tokens.delegations import delegation_of

MAX_SCHEDULED_JOBS = 100
START_TASK = "jobs.start-scheduled"


async def add(
    database: Database, access: JobAccess, request: CreateScheduledJob
) -> ScheduledJobRecord:
    """Add a scheduled job for the caller, after its volumes were looked for."""
    await check_commits(database, access.caller, or_none(request.jobSpec.volumes) or ())
    async with database.transaction() as conn:
        return await create(conn, access, request)


async def trigger(database: Database, access: JobAccess, scheduled_job_id: str) -> JobRecord:
    """Run a scheduled job now, in the name of the caller."""
    async with database.read() as conn:
        scheduled = await get_to_change(conn, access, scheduled_job_id)
    await check_commits(database, access.caller, or_none(scheduled.request.volumes) or ())
    async with database.transaction() as conn:
        return await run(conn, access, scheduled)


async def create(
    conn: Connection, access: JobAccess, request: CreateScheduledJob
) -> ScheduledJobRecord:
    """Add a scheduled job; its request is checked now, and at each run.

    Volumes that name a commit by its id need `requests.check_commits` before.
    """
    _check_fields(request.jobSpec)
    next_run_at = next_after(request.schedule, now())
    await jobs.check(conn, access, request.jobSpec)
    owner = access.owner
    await conn.lock(f"scheduled jobs of {owner.id}")
    if await store.count_of(conn, owner_id=owner.id) >= MAX_SCHEDULED_JOBS:
        raise TooManyScheduledJobs(owner.name, MAX_SCHEDULED_JOBS)
    secrets = requests.secrets_of(request.jobSpec)
    scheduled = ScheduledJobRecord(
        id=new_object_id(),
        owner_id=owner.id,
        creator_id=access.caller.user_id,
        delegation=delegation_of(access.caller),
        request=request.jobSpec,
        secret_names=tuple(secrets),
        schedule=request.schedule,
        concurrency=request.concurrency,
        suspended=request.suspend,
        next_run_at=next_run_at,
        created_at=now(),
    )
    await store.add(conn, scheduled, sealed=jobs.seal_secrets(conn.hub.keys, scheduled.id, secrets))
    await _add_task_unless_suspended(conn, scheduled)
    return scheduled


def _check_fields(request: JobRequest) -> None:
    """Refuse fields that only make sense while somebody waits for the job."""
    ssh = or_none(request.ssh)
    if ssh is not None and ssh.enabled:
        raise NotByTheClock("ssh")
    if or_none(request.network) is not None:
        raise NotByTheClock("network")


async def list_of(
    conn: Reader, access: JobAccess, labels: frozenset[str]
) -> list[ScheduledJobRecord]:
    """Return those that the caller sees and that have all labels, each as in `name=value`."""
    visible = await store.list_of(
        conn,
        owner_id=access.owner.id,
        user_id=access.caller.user_id,
        sees_every_group=access.role is Role.admin,
    )
    return [scheduled for scheduled in visible if labels <= _labels(scheduled)]


def _labels(scheduled: ScheduledJobRecord) -> set[str]:
    labels = or_none(scheduled.request.labels) or {}
    return {f"{name}={value}" for name, value in labels.items()}


async def get(conn: Reader, access: JobAccess, scheduled_job_id: str) -> ScheduledJobRecord:
    scheduled = await store.find(conn, scheduled_job_id, owner_id=access.owner.id)
    if scheduled is None or await _role(conn, access, scheduled) is None:
        raise ScheduledJobNotFound(scheduled_job_id)
    return scheduled


async def get_to_change(
    conn: Reader, access: JobAccess, scheduled_job_id: str
) -> ScheduledJobRecord:
    """Return a scheduled job that the caller may change, run and delete."""
    scheduled = await get(conn, access, scheduled_job_id)
    if not await may_change(conn, access, scheduled):
        raise RoleNeeded(Role.write, access.owner.name)
    return scheduled


async def may_change(conn: Reader, access: JobAccess, scheduled: ScheduledJobRecord) -> bool:
    return access.may_change(scheduled.creator_id, await _role(conn, access, scheduled))


async def _role(conn: Reader, access: JobAccess, scheduled: ScheduledJobRecord) -> Role | None:
    return await role_in_group(conn, access, or_none(scheduled.request.resourceGroupId))


async def set_suspended(
    conn: Connection, access: JobAccess, scheduled_job_id: str, *, suspended: bool
) -> ScheduledJobRecord:
    """Suspend or resume; runs that were missed meanwhile are not made up for."""
    scheduled = await get_to_change(conn, access, scheduled_job_id)
    return await _set_times(conn, replace(scheduled, suspended=suspended))


async def set_schedule(
    conn: Connection, access: JobAccess, scheduled_job_id: str, schedule: str
) -> ScheduledJobRecord:
    scheduled = await get_to_change(conn, access, scheduled_job_id)
    return await _set_times(conn, replace(scheduled, schedule=schedule))


async def _set_times(conn: Connection, scheduled: ScheduledJobRecord) -> ScheduledJobRecord:
    changed = replace(scheduled, next_run_at=next_after(scheduled.schedule, now()))
    await store.set_times(conn, changed)
    await _add_task_unless_suspended(conn, changed)
    return changed


async def _add_task_unless_suspended(conn: Connection, scheduled: ScheduledJobRecord) -> None:
    if not scheduled.suspended:
        await add_start_task(conn, scheduled.id, at=scheduled.next_run_at)


async def add_start_task(conn: Connection, scheduled_job_id: str, *, at: datetime) -> None:
    """Add the task that starts a scheduled job at a time, if it is still due then."""
    due_at = to_micros(at)
    body = json.dumps({"scheduled_job_id": scheduled_job_id, "due_at": due_at})
    key = f"schedule:{scheduled_job_id}:{due_at}"
    await add_task(conn, NewTask(kind=START_TASK, body=body, key=key, delay=at - now()))


async def set_labels(
    conn: Connection, access: JobAccess, scheduled_job_id: str, labels: Mapping[str, str]
) -> ScheduledJobRecord:
    scheduled = await get_to_change(conn, access, scheduled_job_id)
    await store.set_labels(conn, scheduled.id, labels)
    return await get(conn, access, scheduled_job_id)


async def remove(conn: Connection, access: JobAccess, scheduled_job_id: str) -> None:
    """Remove a scheduled job; the jobs that it started stay."""
    scheduled = await get_to_change(conn, access, scheduled_job_id)
    await store.remove(conn, scheduled.id)


async def run(
    conn: Connection, access: JobAccess, scheduled: ScheduledJobRecord, *, key: str | None = None
) -> JobRecord:
    """Start a job now, in the name of the caller; the next run stays as it is."""
    # One run at a time: two at once would each find that no job goes on.
    await conn.lock(f"runs of {scheduled.id}")
    if not scheduled.concurrency:
        running_id = await store.find_running(conn, scheduled.id)
        if running_id is not None:
            raise LastRunGoesOn(running_id)
    sealed = await store.find_sealed(conn, scheduled.id)
    job = await jobs.create(
        conn,
        access=access,
        initiator=Initiator(type=InitiatorType.scheduled_job, id=scheduled.id),
        request=scheduled.request,
        key=key,
        secrets=jobs.unseal_secrets(conn.hub.keys, scheduled.id, sealed),
    )
    await store.set_last_run(conn, scheduled.id, job)
    return job


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
            await run(conn, access, scheduled, key=key)


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
    await add_start_task(conn, scheduled.id, at=due)
    return True
