"""HTTP for the list of an owner's jobs, and for what its buttons do: cancel, run again, label, delete."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query, Response

from hublet.accounts.users import store as users
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.jobs import list_store, service
from hublet.jobs.access import JobAccess, filter_for, get_access, may_run
from hublet.jobs.auth import JobAvailability, read_labels
from hublet.jobs.errors import SecretsGone
from hublet.jobs.records import JobRecord, Stage
from hublet.jobs.schedules import service as schedules
from hublet.jobs.schemas import UpdateLabels
from hublet.login.auth import FormFields
from hublet.login.browser import safe_path
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit, Since
from hublet.web.jobs.job_forms import labels_from, labels_text
from hublet.web.jobs.list_views import (
    JOBS_OF_OWNER,
    JobOwnerPage,
    JobRow,
    get_owner_page,
    job_rows,
    purpose_of,
    stream_of,
)
from hublet.web.live import LiveContent, live_stream
from hublet.web.pages import frame_for, go_to, next_page_url, read_as, render, status_of

router = PageRouter()

_PAGE_SIZE = 30
_JOBS = "/jobs/{owner}"
_JOB = f"{_JOBS}/{{job_id}}"
# A select without a choice sends an empty text.
_Stages = Annotated[list[Stage | Literal[""]], Query(max_length=len(Stage) + 1)]
_Labels = Annotated[list[Annotated[str, Query(max_length=201)]], Query(max_length=20)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobListPage:
    head: JobOwnerPage
    rows: list[JobRow]
    count: int
    schedule_count: int
    stages: tuple[Stage, ...]
    # Each label of the filter, and the address of the list without it.
    labels: list[tuple[str, str]]
    may_run: bool
    # The people and organizations whose jobs the viewer sees.
    owners: list[str]
    next_url: str | None
    # For who has run none: the first one.
    command: str

    @property
    def is_filtered(self) -> bool:
        return bool(self.stages or self.labels)


@router.get("/jobs")
async def get_own_jobs_page(visit: SignedInVisit) -> Response:
    return go_to(visit, f"/jobs/{visit.person.user_name}")


@router.get(_JOBS)
async def list_jobs_page(
    visit: SignedInVisit,
    owner: str,
    stage: _Stages = [],  # noqa: B006 - FastAPI copies it
    label: _Labels = [],  # noqa: B006 - FastAPI copies it
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show jobs, newest first, with the filters of the API; their stages change by themselves."""
    stages = tuple(each for each in stage if each)
    labels = read_labels(filter(None, label))
    before = read_cursor(cursor) if cursor else ""
    async with visit.database.read() as conn:
        head = await get_owner_page(conn, visit, owner)
        frame = await frame_for(visit, conn)
        live = await stream_of(conn, head)
        chosen = filter_for(head.access, stages=stages, labels=labels)
        found = await list_store.list_of(conn, chosen, before=before, limit=_PAGE_SIZE + 1)
        shown = found[:_PAGE_SIZE]
        next_url = (
            next_page_url(visit, write_cursor(shown[-1].id)) if len(found) > len(shown) else None
        )
        page = JobListPage(
            head=head,
            rows=await job_rows(conn, head.access, shown),
            count=await list_store.count_of(conn, chosen),
            schedule_count=len(await schedules.list_of(conn, head.access, frozenset())),
            stages=stages,
            labels=[(each, _without(head, stages, labels, each)) for each in sorted(labels)],
            may_run=await may_run(conn, head.access),
            owners=await _list_owners(conn, visit),
            next_url=next_url,
            command=_first_command(visit, head),
        )
    return await render(
        visit, "jobs/list.html", frame=frame, live=live, page=page, all_stages=list(Stage)
    )


@router.get(f"{_JOBS}/events")
async def stream_jobs(visit: SignedInVisit, owner: str, since: Since = 0) -> Response:
    """Say whenever a stage of the owner's jobs changes; whoever may see their list may listen."""
    async with visit.database.read() as conn:
        access = await get_access(conn, visit.person, owner)

    async def check() -> None:
        async with visit.database.read() as conn:
            await get_access(conn, visit.person, owner)

    content = LiveContent(kind=JOBS_OF_OWNER, key=access.owner.id, since=since)
    return live_stream(visit, content, check)


def _first_command(visit: PageVisit, head: JobOwnerPage) -> str:
    namespace = "" if head.name == visit.person.user_name else f"--namespace {head.name} "
    base_url = visit.settings.base_url
    return f"export HF_ENDPOINT={base_url}\nhf jobs run {namespace}ubuntu echo hello"


def _without(
    head: JobOwnerPage, stages: tuple[Stage, ...], labels: frozenset[str], label: str
) -> str:
    """Return the address of the list without one of its labels."""
    query = [("stage", each) for each in stages] + [
        ("label", each) for each in sorted(labels) if each != label
    ]
    return f"{head.path}?{urlencode(query)}" if query else head.path


async def _list_owners(conn: Reader, visit: PageVisit) -> list[str]:
    memberships = await users.memberships_of(conn, user_id=visit.person.user_id)
    return [visit.person.user_name, *(each.organization.name for each in memberships)]


@router.post(f"{_JOB}/cancel")
async def cancel_job(visit: SignedInVisit, owner: str, job_id: str, form: FormFields) -> Response:
    async with visit.database.transaction() as conn:
        access = await checked_access(conn, visit, owner, form)
        job = await service.cancel(conn, access, job_id)
    toast = "It was over already." if job.stage.is_terminal else "The job is being canceled."
    return _go_on(visit, access, job, form, toast=toast)


@router.post(f"{_JOB}/run-again")
async def run_job_again(
    visit: SignedInVisit,
    owner: str,
    job_id: str,
    availability: JobAvailability,
    form: FormFields,
) -> Response:
    """Run a job once more as it was, with its secrets; if they are gone, the form asks for them."""
    async with visit.database.read() as conn:
        access = await checked_access(conn, visit, owner, form)
    try:
        await service.prepare_copy(visit.database, availability, access, job_id)
        async with visit.database.transaction() as conn:
            copy = await service.duplicate(conn, access, job_id)
    except SecretsGone as error:
        path = f"/jobs/{access.owner.name}/new?{urlencode({'from': job_id})}"
        return go_to(visit, path, toast=error.message)
    return _go_on(visit, access, copy, form, toast="It runs once more.")


@router.post(f"{_JOB}/delete")
async def delete_job(visit: FreshVisit, owner: str, job_id: str, form: FormFields) -> Response:
    """Delete a job that is over, with what it printed."""
    async with visit.database.transaction() as conn:
        access = await checked_access(conn, visit, owner, form)
        await service.delete(conn, access, job_id)
    return go_to(visit, f"/jobs/{access.owner.name}", toast="The job is deleted.")


@router.get(f"{_JOB}/labels")
async def get_labels_page(visit: SignedInVisit, owner: str, job_id: str) -> Response:
    return await _show_labels(visit, owner, job_id)


@router.post(f"{_JOB}/labels")
async def change_labels(
    visit: SignedInVisit, owner: str, job_id: str, form: FormFields
) -> Response:
    """Replace all labels of a job."""
    typed = form.get("labels", "")
    async with visit.database.read() as conn:
        access = await checked_access(conn, visit, owner, form)
    try:
        labels = read_as(UpdateLabels, labels=labels_from(typed)).labels
        async with visit.database.transaction() as conn:
            job = await service.set_labels(conn, access, job_id, labels)
    except InvalidRequest as error:
        return await _show_labels(visit, owner, job_id, typed=typed, problem=error)
    return _go_on(visit, access, job, form, toast="The labels are saved.")


async def _show_labels(
    visit: PageVisit,
    owner: str,
    job_id: str,
    *,
    typed: str | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await get_owner_page(conn, visit, owner)
        job = await service.get_to_change(conn, head.access, job_id)
        [row] = await job_rows(conn, head.access, [job])
        frame = await frame_for(visit, conn)
    return await render(
        visit,
        "jobs/labels.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        head=head,
        row=row,
        typed=labels_text(job.labels) if typed is None else typed,
        problem=None if problem is None else problem.message,
    )


async def checked_access(conn: Reader, visit: PageVisit, owner: str, form: FormFields) -> JobAccess:
    """Return the access of who sent a form of the owner's pages; refuse one from elsewhere."""
    access = await get_access(conn, visit.person, owner)
    visit.check(form, purpose_of(access))
    return access


def _go_on(
    visit: PageVisit, access: JobAccess, job: JobRecord, form: FormFields, *, toast: str
) -> Response:
    """Lead back to where the button was, or to the page of the job."""
    path = f"/jobs/{access.owner.name}/{job.id}"
    return go_to(visit, safe_path(form.get("next") or path), toast=toast)
