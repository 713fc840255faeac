"""HTTP for the form of a new job, or of one that is run again with changes; by hand or by a schedule."""

from typing import Annotated

from fastapi import Query, Response

from hublet.core.clock import now
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest, NotFound
from hublet.core.pages import PageRouter
from hublet.jobs import hardware, service
from hublet.jobs.access import JobAccess, list_groups_to_run_in
from hublet.jobs.addresses import why_no_ssh
from hublet.jobs.auth import JobAvailability
from hublet.jobs.errors import NoRunner
from hublet.jobs.records import Availability, VolumeType
from hublet.jobs.requests import request_from
from hublet.jobs.schedules import records
from hublet.jobs.schedules import service as schedules
from hublet.jobs.schedules.schemas import CreateScheduledJob
from hublet.login.auth import FRESH_LOGIN, FormFields
from hublet.repos import service as repos
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, ListSort, RepoFilter
from hublet.repos.records import Repo, RepoType, Right
from hublet.web.auth import PageVisit, SignedInVisit
from hublet.web.jobs.job_forms import JobForm, form_from, read_job_form, request_of
from hublet.web.jobs.list_routes import checked_access
from hublet.web.jobs.list_views import duration_text, get_owner_page
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, status_of

router = PageRouter()

_NEW = "/jobs/{owner}/new"
# Offered of each type of volume, by one search.
_MOST_FOUND = 5
_SHOWN_RUNS = 5
_Id = Annotated[str, Query(max_length=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormNotes:
    """What the page says beside what was typed."""

    problem: HubError | None = None
    # Whether the next runs of the schedule are to be shown.
    has_preview: bool = False


@router.get(_NEW)
async def get_new_job_page(
    visit: SignedInVisit,
    owner: str,
    source: Annotated[str, Query(alias="from", max_length=64)] = "",
    schedule: _Id = "",
) -> Response:
    """Show the form: empty, or as a job or a schedule was requested."""
    async with visit.database.read() as conn:
        access = (await get_owner_page(conn, visit, owner)).access
        if schedule:
            scheduled = await schedules.get(conn, access, schedule)
            form = form_from(
                scheduled.request,
                scheduled.secret_names,
                times="cron",
                schedule=scheduled.schedule,
            )
        elif source:
            job = await service.get(conn, access, source)
            request = request_from(job, with_volumes=True)
            form = form_from(request, job.secret_names, **{"from": job.id})
        else:
            form = JobForm(values={"attempts": "1"})
    return await _show(visit, owner, form)


@router.post(_NEW)
async def create_job(
    visit: SignedInVisit, owner: str, availability: JobAvailability, typed: FormFields
) -> Response:
    """Run what was typed, or do what a button beside it says: search, add, remove, preview."""
    async with visit.database.read() as conn:
        access = await checked_access(conn, visit, owner, typed)
    form = read_job_form(typed)
    if (asked := _side_step(form, typed)) is not None:
        return await _show(visit, owner, *asked)
    try:
        path, toast = await _create(visit, availability, access, form, typed)
    except (*REFUSALS, NotFound, NoRunner) as error:
        return await _show(visit, owner, form, FormNotes(problem=error))
    return go_to(visit, path, toast=toast)


def _side_step(form: JobForm, typed: FormFields) -> tuple[JobForm, FormNotes] | None:
    """Return the form after a button that runs nothing; None: the job is to run."""
    button = typed.get("do", "")
    if "add" in typed:
        return form.with_volume(typed["add"]), FormNotes()
    if "remove" in typed:
        return form.without_volume(typed["remove"]), FormNotes()
    # Enter in a field presses the first button.
    is_search = button == "search" or (button == "enter" and form.text("find").strip())
    if is_search or button == "preview":
        return form, FormNotes(has_preview=button == "preview")
    return None


async def _create(
    visit: PageVisit,
    availability: Availability,
    access: JobAccess,
    form: JobForm,
    typed: FormFields,
) -> tuple[str, str]:
    """Create a job or a schedule; return the address of its page, and what to say there."""
    request = request_of(form, typed)
    path = f"/jobs/{access.owner.name}"
    if form.schedule or form.text("times"):
        wanted = read_as(
            CreateScheduledJob,
            jobSpec=request,
            schedule=form.schedule,
            concurrency="concurrency" in form.checked,
            suspend="suspend" in form.checked,
        )
        await _check_secrets(visit, access, form, typed, may_keep=False)
        scheduled = await schedules.add(visit.database, access, wanted)
        return f"{path}/scheduled/{scheduled.id}", "The job is scheduled."
    source = form.text("from") or None
    await _check_secrets(visit, access, form, typed, may_keep=source is not None)
    await service.prepare(visit.database, availability, access, request)
    async with visit.database.transaction() as conn:
        job = await service.start(conn, access, request, secrets_from=source)
    return f"{path}/{job.id}", "The job is there."


async def _check_secrets(
    visit: PageVisit, access: JobAccess, form: JobForm, typed: FormFields, *, may_keep: bool
) -> None:
    """Refuse a secret without a value, unless it is one that is kept from the job before."""
    kept = set[str]()
    if may_keep:
        async with visit.database.read() as conn:
            kept = set(await _names_to_keep(conn, visit, access, form))
    pairs = zip(typed.getlist("secret_name"), typed.getlist("secret_value"), strict=False)
    empty = sorted({name.strip() for name, value in pairs if name.strip() and not value} - kept)
    if empty:
        names = ", ".join(empty)
        raise InvalidRequest(f"secrets: type the value of {names}; it is kept in no page.")


async def _names_to_keep(
    conn: Reader, visit: PageVisit, access: JobAccess, form: JobForm
) -> tuple[str, ...]:
    """Return the secrets of the job before that need no value: the viewer's own, just signed in."""
    if not form.text("from") or not _is_fresh(visit):
        return ()
    source = await service.get(conn, access, form.text("from"))
    return source.secret_names if service.may_keep_secrets(access, source) else ()


def _is_fresh(visit: PageVisit) -> bool:
    session = visit.session
    return session is not None and now() - session.authenticated_at <= FRESH_LOGIN


async def _show(
    visit: PageVisit, owner: str, form: JobForm, notes: FormNotes | None = None
) -> Response:
    notes = notes or FormNotes()
    settings = visit.settings
    async with visit.database.read() as conn:
        head = await get_owner_page(conn, visit, owner)
        frame = await frame_for(visit, conn)
        kept = await _names_to_keep(conn, visit, head.access, form)
        groups = await list_groups_to_run_in(conn, head.access)
        found = await _find_volumes(conn, visit, head.access, form)
    problem, runs, words = notes.problem, [], ""
    preview_problem = None
    if notes.has_preview:
        try:
            runs = records.next_runs(form.schedule, now(), count=_SHOWN_RUNS)
            words = records.describe_schedule(form.schedule)
        except InvalidRequest as error:
            preview_problem = error
    refused = problem or preview_problem
    return await render(
        visit,
        "jobs/new.html",
        frame=frame,
        status=200 if refused is None else status_of(refused),
        head=head,
        form=form,
        fresh=_is_fresh(visit),
        problem=None if problem is None else problem.message,
        kept=kept,
        groups=groups,
        found=found,
        hardware=hardware.list_hardware(settings),
        images=[each.pattern for each in settings.jobs.images if "*" not in each.pattern],
        default_timeout=duration_text(settings.jobs.timeout_seconds),
        max_timeout=duration_text(settings.jobs.max_timeout_seconds),
        has_ssh=why_no_ssh(settings) is None,
        runs=runs,
        words=words,
        preview_problem=None if preview_problem is None else preview_problem.message,
    )


async def _find_volumes(
    conn: Reader, visit: PageVisit, access: JobAccess, form: JobForm
) -> list[Repo]:
    """Return what a search finds to mount; without one, what the owner changed last."""
    words = tuple(form.text("find").split()[:5])
    taken = {(row.type, row.source) for row in form.volumes}
    found = list[Repo]()
    for type_ in VolumeType:
        listed = await lists.list_repos(
            conn,
            visit.caller,
            RepoFilter(
                type=RepoType(type_), words=words, author="" if words else access.owner.name
            ),
            order=ListOrder(sort=ListSort.update),
            limit=_MOST_FOUND,
        )
        found += [
            repo
            for repo in listed
            if (repo.type, repo.full_name) not in taken
            and await repos.may(conn, visit.caller, repo, Right.read)
        ]
    return found
