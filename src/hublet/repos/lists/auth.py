"""Which page of which list a request asks for, as types that a route names."""

from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response

from hublet.core.errors import InvalidRequest
from hublet.core.http.paging import Page
from hublet.core.paging import DEFAULT_LIMIT, read_cursor
from hublet.repos.auth import GitRepoType
from hublet.repos.lists.records import Order, RepoFilter, Sort

# The public client asks for as many as its caller wants in all, and goes on page by page.
MAX_LIMIT = 1000

_SORTS = {
    "createdAt": Sort.creation,
    "lastModified": Sort.update,
    "likes": Sort.likes,
    "downloads": Sort.downloads,
    "trendingScore": Sort.likes,
}
SortName = Literal["createdAt", "lastModified", "likes", "downloads", "trendingScore"]
_Text = Annotated[str, Query(max_length=200)]

# What the public service can filter by and this hub cannot: a list without it would be wrong.
_UNKNOWN_FILTERS = (
    "apps",
    "inference",
    "inference_provider",
    "num_parameters",
    "datasets",
    "models",
)


async def _list_page(
    request: Request,
    response: Response,
    limit: Annotated[
        int, Query(ge=1, description=f"A page has at most {MAX_LIMIT}, whatever is asked for.")
    ] = DEFAULT_LIMIT,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(after=after, limit=min(limit, MAX_LIMIT), _request=request, _response=response)


ListPage = Annotated[Page, Depends(_list_page)]


async def _filter(  # noqa: PLR0913 - FastAPI reads the query from the signature
    request: Request,
    type_: GitRepoType,
    *,
    search: Annotated[
        list[str] | None, Query(max_length=20, description="Parts of owner/name.")
    ] = None,
    author: _Text = "",
    filter_: Annotated[
        list[str] | None, Query(alias="filter", max_length=20, description="Tags, all of them.")
    ] = None,
    pipeline_tag: _Text = "",
    gated: bool | None = None,
) -> RepoFilter:
    for name in _UNKNOWN_FILTERS:
        if name in request.query_params:
            raise InvalidRequest(f"{name}: this hub cannot filter by this.")
    tags = [*(filter_ or ()), *([pipeline_tag] if pipeline_tag else [])]
    return RepoFilter(
        type=type_, author=author, words=tuple(search or ()), tags=tuple(tags), gated=gated
    )


AskedRepos = Annotated[RepoFilter, Depends(_filter)]


async def _order(
    sort: SortName = "createdAt",
    direction: Annotated[
        Literal["-1", "1"], Query(description="-1: the largest or newest first.")
    ] = "-1",
) -> Order:
    return Order(sort=_SORTS[sort], ascending=direction == "1")


AskedOrder = Annotated[Order, Depends(_order)]
