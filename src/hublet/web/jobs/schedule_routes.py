"""HTTP for scheduled jobs: their list, and the page of one with its next runs and the jobs it started."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from fastapi import Response

from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.jobs import list_store as jobs
from hublet.jobs.access import JobAccess, filter_for, may_run
from hublet.jobs.errors import LastRunGoesOn
from hublet.jobs.records import Initiator, InitiatorType, Spec
from hublet.jobs.request_schemas import or_none
from hublet.jobs.requests import spec_of
from hublet.jobs.schedules import records, service
from hublet.jobs.schedules.records import ScheduledJobRecord
from hublet.jobs.schedules.schemas import UpdateSchedule
from hublet.jobs.schemas import UpdateLabels
from hublet.login.auth import FormFields
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.jobs.job_forms import labels_from, labels_text
from hublet.web.jobs.list_routes import checked_access
from hublet.web.jobs.list_views import JobRow, command_line, get_owner_page, job_rows, stream_of
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, status_of

router = PageRouter()

_ALL = "/jobs/{owner}/scheduled"
_ONE = f"{_ALL}/{{schedule_id}}"
_SHOWN_RUNS = 5
_SHOWN_JOBS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """A scheduled job in a list, and at the head of its page."""

    scheduled: ScheduledJobRecord
    path: str
    title: str
    # When it runs, in words.
    words: str
    labels: dict[str, str]
    spec: Spec
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePage:
    row: ScheduleRow
    next_runs: list[datetime]
    history: list[JobRow]
    may_change: bool


def _row(scheduled: ScheduledJobRecord, access: JobAccess) -> ScheduleRow:
    labels = or_none(scheduled.request.labels) or {}
    spec = spec_of(scheduled.request, ())
    return ScheduleRow(
        scheduled=scheduled,
        path=f"/jobs/{access.owner.name}/scheduled/{scheduled.id}",
        title=labels.get("name") or f"Schedule {scheduled.id[-8:]}",
        words=records.describe_schedule(scheduled.schedule),
        labels=labels,
        spec=spec,
        command=command_line(spec),
    )


@router.get(_ALL)
async def list_schedules_page(visit: SignedInVisit, owner: str) -> Response:
    async with visit.database.read() as conn:
        head = await get_owner_page(conn, visit, owner)
        frame = await frame_for(visit, conn)
        found = await service.list_of(conn, head.access, frozenset())
        job_count = await jobs.count_of(conn, filter_for(head.access))
        may_add = await may_run(conn, head.access)
    return await render(
        visit,
        "jobs/schedules.html",
        frame=frame,
        head=head,
        rows=[_row(each, head.access) for each in found],
        job_count=job_count,
        may_run=may_add,
        most=service.MAX_SCHEDULED_JOBS,
    )


@router.get(_ONE)
async def get_schedule_page(visit: SignedInVisit, owner: str, schedule_id: str) -> Response:
    return await _show(visit, owner, schedule_id)


@router.post(f"{_ONE}/suspend")
async def suspend_schedule(
    visit: SignedInVisit, owner: str, schedule_id: str, form: FormFields
) -> Response:
    async def suspend(conn: Connection, access: JobAccess) -> None:
        await service.set_suspended(conn, access, schedule_id, suspended=True)

    return await _do(visit, owner, schedule_id, form, suspend, toast="It starts no more jobs.")


@router.post(f"{_ONE}/resume")
async def resume_schedule(
    visit: SignedInVisit, owner: str, schedule_id: str, form: FormFields
) -> Response:
    async def resume(conn: Connection, access: JobAccess) -> None:
        await service.set_suspended(conn, access, schedule_id, suspended=False)

    return await _do(visit, owner, schedule_id, form, resume, toast="It starts jobs again.")


@router.post(f"{_ONE}/times")
async def change_times(
    visit: SignedInVisit, owner: str, schedule_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, access: JobAccess) -> None:
        wanted = read_as(UpdateSchedule, schedule=form.get("schedule", "").strip())
        await service.set_schedule(conn, access, schedule_id, wanted.schedule)

    return await _do(visit, owner, schedule_id, form, change, toast="The times are saved.")


@router.post(f"{_ONE}/labels")
async def change_labels(
    visit: SignedInVisit, owner: str, schedule_id: str, form: FormFields
) -> Response:
    """Replace the labels of the jobs that it starts from now on."""

    async def change(conn: Connection, access: JobAccess) -> None:
        wanted = read_as(UpdateLabels, labels=labels_from(form.get("labels", "")))
        await service.set_labels(conn, access, schedule_id, wanted.labels)

    return await _do(visit, owner, schedule_id, form, change, toast="The labels are saved.")


@router.post(f"{_ONE}/run")
async def trigger_schedule(
    visit: SignedInVisit, owner: str, schedule_id: str, form: FormFields
) -> Response:
    """Run it now, in the name of who presses."""
    async with visit.database.read() as conn:
        access = await checked_access(conn, visit, owner, form)
    try:
        await service.trigger(visit.database, access, schedule_id)
    except (*REFUSALS, LastRunGoesOn) as error:
        return await _show(visit, owner, schedule_id, problem=error)
    return go_to(visit, _path(access, schedule_id), toast="A job was started.")


@router.post(f"{_ONE}/delete")
async def delete_schedule(
    visit: FreshVisit, owner: str, schedule_id: str, form: FormFields
) -> Response:
    """Delete a schedule; the jobs that it started stay."""
    async with visit.database.transaction() as conn:
        access = await checked_access(conn, visit, owner, form)
        await service.remove(conn, access, schedule_id)
    return go_to(visit, f"/jobs/{access.owner.name}/scheduled", toast="The schedule is deleted.")


async def _do(
    visit: PageVisit,
    owner: str,
    schedule_id: str,
    form: FormFields,
    change: Callable[[Connection, JobAccess], Awaitable[None]],
    *,
    toast: str,
) -> Response:
    """Make a change, and show the page again with what was typed if it is refused."""
    async with visit.database.read() as conn:
        access = await checked_access(conn, visit, owner, form)
    try:
        async with visit.database.transaction() as conn:
            await change(conn, access)
    except REFUSALS as error:
        return await _show(visit, owner, schedule_id, typed=form, problem=error)
    return go_to(visit, _path(access, schedule_id), toast=toast)


def _path(access: JobAccess, schedule_id: str) -> str:
    return f"/jobs/{access.owner.name}/scheduled/{schedule_id}"


async def _show(
    visit: PageVisit,
    owner: str,
    schedule_id: str,
    *,
    typed: FormFields | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await get_owner_page(conn, visit, owner)
        frame = await frame_for(visit, conn)
        live = await stream_of(conn, head)
        page = await _page(conn, head.access, schedule_id)
    form: Mapping[str, str] = typed or {}
    return await render(
        visit,
        "jobs/schedule.html",
        frame=frame,
        live=live,
        status=200 if problem is None else status_of(problem),
        head=head,
        page=page,
        typed_schedule=form.get("schedule") or page.row.scheduled.schedule,
        typed_labels=form.get("labels", labels_text(page.row.labels)),
        problem=None if problem is None else problem.message,
    )


async def _page(conn: Reader, access: JobAccess, schedule_id: str) -> SchedulePage:
    scheduled = await service.get(conn, access, schedule_id)
    started_by_it = Initiator(type=InitiatorType.scheduled_job, id=scheduled.id)
    history = await jobs.list_of(
        conn, filter_for(access, initiator=started_by_it), before="", limit=_SHOWN_JOBS
    )
    return SchedulePage(
        row=_row(scheduled, access),
        next_runs=(
            []
            if scheduled.suspended
            else records.next_runs(scheduled.schedule, now(), count=_SHOWN_RUNS)
        ),
        history=await job_rows(conn, access, history),
        may_change=await service.may_change(conn, access, scheduled),
    )
