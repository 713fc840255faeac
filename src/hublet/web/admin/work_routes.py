"""HTTP for the administration of work: tasks, deliveries, jobs, workers, and the storage."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Query, Response

from hublet.accounts import administration
from hublet.accounts.records import Actor
from hublet.core import queue
from hublet.core.clock import from_micros, offset
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, NotFound
from hublet.core.heartbeat import list_processes
from hublet.core.leases import WorkerClaims
from hublet.core.pages import PageRouter
from hublet.jobs import statistics_store as jobs
from hublet.login.auth import FormFields
from hublet.repos import pruning, scrub_store, scrubber, usage, usage_store
from hublet.tokens.auth import check_administrator
from hublet.web.admin import PURPOSE, admin_frame, administer
from hublet.web.auth import FreshVisit, OperatorVisit, PageVisit
from hublet.web.pages import go_to, render, status_of
from hublet.webhooks.delivery import store as deliveries

router = PageRouter()

_TASKS = "/admin/tasks"
_STORAGE = "/admin/storage"
_MOST_PARKED = 100
_MOST_DAMAGED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker that holds something, and when the first of its leases ends."""

    name: str
    tasks: int
    deliveries: int
    jobs: int
    lease_ends: datetime


@router.get(_TASKS)
async def get_tasks_page(visit: OperatorVisit) -> Response:
    return await _show_tasks(visit)


@router.post(f"{_TASKS}/retry")
async def retry_tasks(visit: FreshVisit, form: FormFields) -> Response:
    """Try a parked task again, or all of them."""
    task_id = form.get("task", "")
    counts: list[int] = []

    async def retry(conn: Connection, actor: Actor) -> None:
        count = await administration.retry_tasks(conn, actor, task_id=task_id or None)
        if task_id and not count:
            raise NotFound(f"There is no parked task {task_id}.")
        counts.append(count)

    if (problem := await administer(visit, form, retry)) is not None:
        return await _show_tasks(visit, problem=problem)
    count = counts[0]
    toast = "The task is tried again." if count == 1 else f"{count} tasks are tried again."
    return go_to(visit, _TASKS, toast=toast)


@router.post(f"{_TASKS}/drop")
async def drop_task(visit: FreshVisit, form: FormFields) -> Response:
    async def drop(conn: Connection, actor: Actor) -> None:
        await administration.drop_task(conn, actor, form.get("task", ""))

    if (problem := await administer(visit, form, drop)) is not None:
        return await _show_tasks(visit, problem=problem)
    return go_to(visit, _TASKS, toast="The task is dropped.")


async def _show_tasks(visit: PageVisit, *, problem: HubError | None = None) -> Response:
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, _TASKS)
        kinds = await queue.count_by_kind(conn)
        parked = await queue.list_parked(conn, limit=_MOST_PARKED)
        workers = await _list_workers(conn)
        waiting = await deliveries.count_waiting(conn)
        stages = await jobs.count_by_stage(conn)
        processes = await list_processes(conn, kind=visit.database.kind)
    return await render(
        visit,
        "admin/tasks.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        kinds=sorted(kinds, key=lambda each: (-each.due - each.running, each.kind)),
        parked=[(task, from_micros(task.parked_at)) for task in parked],
        parked_count=sum(each.parked for each in kinds),
        workers=workers,
        processes=processes,
        waiting_deliveries=waiting,
        running_jobs=stages.get("RUNNING", 0),
        waiting_jobs=stages.get("SCHEDULING", 0),
        form_token=visit.form_token(PURPOSE),
        problem=None if problem is None else problem.message,
    )


async def _list_workers(conn: Reader) -> list[WorkerRow]:
    held = [
        _by_worker(await queue.list_claims(conn)),
        _by_worker(await deliveries.list_claims(conn)),
        _by_worker(await jobs.list_claims(conn)),
    ]
    rows = []
    for name in sorted(set().union(*held)):
        claims = [each[name] for each in held if name in each]
        # Leases are on a clock that test mode does not move.
        ends = from_micros(min(each.lease_ends for each in claims)) + offset()
        tasks, sent, looked_after = (each[name].count if name in each else 0 for each in held)
        rows.append(
            WorkerRow(name=name, tasks=tasks, deliveries=sent, jobs=looked_after, lease_ends=ends)
        )
    return rows


def _by_worker(claims: Iterable[WorkerClaims]) -> dict[str, WorkerClaims]:
    return {each.worker: each for each in claims}


@router.get(_STORAGE)
async def get_storage_page(
    visit: OperatorVisit, owner: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, _STORAGE)
        upkeep = {each.name: await usage.find_last(conn, each) for each in usage.Upkeep}
        totals = await usage.known_totals(conn)
        damaged = await scrub_store.list_damaged(conn, limit=_MOST_DAMAGED)
        damaged_count = await scrub_store.count_damaged(conn)
        next_pruning = await _next_due(conn, pruning.PRUNE_BLOBS)
        next_scrubbing = await _next_due(conn, scrubber.SCRUB)
    async with visit.database.transaction() as writing:
        # An owner may have very many contents; others go on while they are added up.
        with writing.in_bulk():
            repos = await usage_store.list_repos(writing, owner) if owner else []
    measured = upkeep["measuring"] or {}
    return await render(
        visit,
        "admin/storage.html",
        frame=frame,
        totals=totals,
        owners=measured.get("owners", []),
        measured_at=measured.get("at"),
        limit=visit.settings.limits.owner_bytes,
        owner=owner,
        repos=sorted(repos, key=lambda each: -each.usage.raw),
        upkeep=upkeep,
        next_pruning=next_pruning,
        next_scrubbing=next_scrubbing,
        scrub_bytes=visit.settings.storage.scrub_bytes,
        check_days=scrubber.CHECK_AGE // timedelta(days=1),
        damaged=damaged,
        damaged_count=damaged_count,
        form_token=visit.form_token(PURPOSE),
    )


@router.post(f"{_STORAGE}/measure")
async def measure_storage(visit: FreshVisit, form: FormFields) -> Response:
    """Add up anew what owners hold; a worker does so every day."""
    visit.check(form, PURPOSE)
    check_administrator(visit.person)
    await usage.measure(visit.database)
    return go_to(visit, _STORAGE, toast="The storage is measured.")


async def _next_due(conn: Reader, kind: str) -> datetime | None:
    due = await queue.next_due_of(conn, kind)
    return None if due is None else from_micros(due)
