"""HTTP for lists of repositories, with the filters that the API has."""

from typing import Annotated

from fastapi import Query, Response

from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.repos.browse import lists
from hublet.repos.browse.auth import RequestedFilter, RequestedOrder, SortName
from hublet.repos.browse.records import ListOrder, RepoFilter
from hublet.repos.records import RepoType
from hublet.web.auth import PageVisit, Visit
from hublet.web.discovery.views import SORTS, RepoListPage, repo_row, without_tag
from hublet.web.pages import frame_for, next_page_url, render

router = PageRouter()

_PAGE_SIZE = 30


_Cursor = Annotated[str, Query(max_length=200)]


@router.get("/{kind:kind}")
async def list_repos_page(
    visit: Visit,
    filters: RequestedFilter,
    order: RequestedOrder,
    sort: SortName = "createdAt",
    cursor: _Cursor = "",
) -> Response:
    return await _show(visit, filters, order, sort=sort, cursor=cursor)


@router.get("/containers")
async def list_containers_page(
    visit: Visit,
    order: RequestedOrder,
    search: Annotated[list[str] | None, Query(max_length=20)] = None,
    author: Annotated[str, Query(max_length=200)] = "",
    sort: SortName = "createdAt",
    cursor: _Cursor = "",
) -> Response:
    filters = RepoFilter(type=RepoType.container, author=author, words=tuple(search or ()))
    return await _show(visit, filters, order, sort=sort, cursor=cursor)


async def _show(
    visit: PageVisit, filters: RepoFilter, order: ListOrder, *, sort: str, cursor: str
) -> Response:
    after = read_cursor(cursor) if cursor else ""
    type_ = filters.type
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        found = await lists.list_repos(
            conn, visit.caller, filters, order=order, after=after, limit=_PAGE_SIZE + 1
        )
    shown = found[:_PAGE_SIZE]
    query = visit.request.query_params.multi_items()
    page = RepoListPage(
        type=type_,
        rows=[repo_row(repo) for repo in shown],
        search=" ".join(filters.words),
        author=filters.author,
        sort=sort,
        num_parameters=visit.request.query_params.get("num_parameters", ""),
        tags=[(tag, without_tag(f"/{type_.plural}", query, tag)) for tag in filters.tags],
        next_url=(
            next_page_url(visit, write_cursor(lists.write_list_cursor(shown[-1], order.sort)))
            if len(found) > len(shown)
            else None
        ),
    )
    return await render(visit, "discovery/list.html", frame=frame, page=page, sorts=SORTS)
