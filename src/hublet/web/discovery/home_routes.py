"""HTTP for the start page: what is mine, what happened, what runs; for others, what is here."""

from fastapi import Response

from hublet.core.database import Reader
from hublet.core.pages import PageRouter
from hublet.jobs import list_store as jobs
from hublet.jobs.records import JobFilter, JobRecord, Stage
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.records import Selection
from hublet.repos.browse import lists
from hublet.repos.browse.records import ListOrder, ListSort, RepoFilter
from hublet.repos.records import RepoType
from hublet.web.auth import PageVisit, Visit
from hublet.web.discovery.views import RepoRow, StartPage, inbox_line, repo_row
from hublet.web.pages import frame_for, render

router = PageRouter()

_MOST_OWN = 12
_MOST_POPULAR = 6
_MOST_LINES = 12
_MOST_JOBS = 5
_GOING_ON = (Stage.scheduling, Stage.running)


@router.get("/")
async def get_start_page(visit: Visit) -> Response:
    caller = visit.caller
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        popular = {
            type_: await _list_popular(conn, visit, type_)
            for type_ in (RepoType.model, RepoType.dataset)
        }
        own = [] if caller is None else await _list_own(conn, visit)
        running = [] if caller is None else await _list_running(conn, caller.user_id)
    items = []
    if caller is not None:
        inbox = await read_page(visit.database, caller.user_id, Selection(), page=0)
        items = inbox["notifications"][:_MOST_LINES]
    page = StartPage(
        base_url=visit.settings.base_url,
        own=own,
        popular=popular,
        running=running,
        lines=[inbox_line(item) for item in items],
    )
    return await render(visit, "discovery/start.html", frame=frame, page=page)


async def _list_popular(conn: Reader, visit: PageVisit, type_: RepoType) -> list[RepoRow]:
    found = await lists.list_repos(
        conn,
        visit.caller,
        RepoFilter(type=type_),
        order=ListOrder(sort=ListSort.likes),
        limit=_MOST_POPULAR,
    )
    return [repo_row(repo) for repo in found]


async def _list_own(conn: Reader, visit: PageVisit) -> list[RepoRow]:
    caller = visit.person
    found = await lists.list_of_owner(conn, caller, caller.user_id, after="", limit=_MOST_OWN)
    return [repo_row(repo) for repo in found]


async def _list_running(conn: Reader, user_id: str) -> list[JobRecord]:
    own = JobFilter(owner_id=user_id, user_id=user_id, sees_every_group=True, stages=_GOING_ON)
    return await jobs.list_of(conn, own, before="", limit=_MOST_JOBS)
