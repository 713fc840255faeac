"""HTTP for lists of repositories, with the filters that the API has."""

from typing import Annotated

from fastapi import Query, Response

from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.repos.auth import GitRepoType
from hublet.repos.browse import lists
from hublet.repos.browse.auth import RequestedFilter, RequestedOrder, SortName
from hublet.web.auth import Visit
from hublet.web.discovery.views import SORTS, RepoListPage, repo_row, without_tag
from hublet.web.pages import frame_for, next_page_url, render

router = PageRouter()

_PAGE_SIZE = 30


@router.get("/{kind:kind}")
async def list_repos_page(
    visit: Visit,
    type_: GitRepoType,
    filters: RequestedFilter,
    order: RequestedOrder,
    sort: SortName = "createdAt",
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    after = read_cursor(cursor) if cursor else ""
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
        tags=[(tag, without_tag(f"/{type_.plural}", query, tag)) for tag in filters.tags],
        next_url=(
            next_page_url(visit, write_cursor(lists.write_list_cursor(shown[-1], order.sort)))
            if len(found) > len(shown)
            else None
        ),
    )
    return await render(visit, "discovery/list.html", frame=frame, page=page, sorts=SORTS)
