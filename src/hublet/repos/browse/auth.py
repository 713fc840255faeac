"""Parameters of browsing as annotated types: revision, path, page, filter, order, properties."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response

from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest
from hublet.core.http import Db
from hublet.core.http.paging import Page
from hublet.core.paging import DEFAULT_LIMIT, read_cursor
from hublet.repos.auth import GitRepo, GitRepoType
from hublet.repos.browse import revisions
from hublet.repos.browse.information import InformationRequest
from hublet.repos.browse.records import (
    IN_DETAIL,
    IN_LISTS,
    ListOrder,
    ListSort,
    Property,
    RepoFilter,
    Revision,
)
from hublet.repos.browse.revisions import read_tree_cursor, split_revision_and_path
from hublet.tokens.auth import MaybeCaller

# The end of a path: a revision with a path in it, or a revision alone.
IN_REVISION = "/{rest:revision}"
REVISION = "/{rev:revision}"

LARGEST_PAGE = 1000
# A page whose items each need a search of the history.
LARGEST_EXPANDED_PAGE = 50
# The public client asks for as many as its caller wants in all, and goes on page by page.
LARGEST_LIST_PAGE = 1000
DEFAULT_COMMITS = 50

_Cursor = Annotated[str, Query(description="Where to go on, from the `Link` header.")]
_Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]


async def _tree_page(
    request: Request,
    response: Response,
    *,
    limit: _Limit = LARGEST_PAGE,
    cursor: _Cursor = "",
    expand: bool = False,
) -> Page:
    most = LARGEST_EXPANDED_PAGE if expand else LARGEST_PAGE
    return _page(request, response, limit=min(limit, most), cursor=cursor)


async def _commit_page(
    request: Request, response: Response, limit: _Limit = DEFAULT_COMMITS, cursor: _Cursor = ""
) -> Page:
    return _page(request, response, limit=limit, cursor=cursor)


def _page(request: Request, response: Response, *, limit: int, cursor: str) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(after=after, limit=limit, _request=request, _response=response)


TreePage = Annotated[Page, Depends(_tree_page)]
CommitPage = Annotated[Page, Depends(_commit_page)]


def revision_and_path(request: Request, rest: str) -> tuple[str, str]:
    return split_revision_and_path(request.scope["raw_path"].decode("latin-1"), rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionPath:
    """A folder or file in a revision, and the position after which a page begins."""

    revision: Revision
    path: str
    after: str = ""

    def for_page(self, page: Page) -> "RevisionPath":
        """Return the path for this page, in the commit that the first page showed."""
        if not page.after:
            return self
        commit, after = read_tree_cursor(page.after)
        return replace(self, revision=replace(self.revision, commit=commit), after=after)


async def _revision_path(
    request: Request, database: Db, caller: MaybeCaller, address: GitRepo, rest: str
) -> RevisionPath:
    name, path = revision_and_path(request, rest)
    revision = await revisions.get_revision(database, caller, address, name)
    return RevisionPath(revision=revision, path=path)


RequestedPath = Annotated[RevisionPath, Depends(_revision_path)]


async def _revision(database: Db, caller: MaybeCaller, address: GitRepo, rev: str) -> Revision:
    return await revisions.get_revision(database, caller, address, rev)


RequestedRevision = Annotated[Revision, Depends(_revision)]


_SORTS = {
    "createdAt": ListSort.creation,
    "lastModified": ListSort.update,
    "likes": ListSort.likes,
    "downloads": ListSort.downloads,
    "trendingScore": ListSort.likes,
}
SortName = Literal["createdAt", "lastModified", "likes", "downloads", "trendingScore"]
_Text = Annotated[str, Query(max_length=200)]

# Filters of the public service that this hub lacks: a list that ignores them would be wrong.
_UNSUPPORTED_FILTERS = (
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
        int,
        Query(ge=1, description=f"A page has at most {LARGEST_LIST_PAGE}, whatever is asked for."),
    ] = DEFAULT_LIMIT,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(
        after=after, limit=min(limit, LARGEST_LIST_PAGE), _request=request, _response=response
    )


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
    for name in _UNSUPPORTED_FILTERS:
        if name in request.query_params:
            raise InvalidRequest(f"{name}: this hub cannot filter by this.")
    tags = [*(filter_ or ()), *([pipeline_tag] if pipeline_tag else [])]
    return RepoFilter(
        type=type_, author=author, words=tuple(search or ()), tags=tuple(tags), gated=gated
    )


RequestedFilter = Annotated[RepoFilter, Depends(_filter)]


async def _order(
    sort: SortName = "createdAt",
    direction: Annotated[
        Literal["-1", "1"], Query(description="-1: the largest or newest first.")
    ] = "-1",
) -> ListOrder:
    return ListOrder(sort=_SORTS[sort], ascending=direction == "1")


RequestedOrder = Annotated[ListOrder, Depends(_order)]


_EXPAND = Query(description="Show only these properties, beside the ids; can be repeated.")
_EXPAND_ARRAY = Query(alias="expand[]", description="The same as `expand`.")
_BLOBS = Query(description="With the size and the digest of each file.")
_SECURITY = Query(alias="securityStatus", description="With the state of scans: there are none.")


async def _expanded(
    expand: Annotated[list[Property] | None, _EXPAND] = None,
    expand_array: Annotated[list[Property] | None, _EXPAND_ARRAY] = None,
) -> frozenset[Property]:
    return frozenset([*(expand or ()), *(expand_array or ())])


# Empty when the request names none.
_Expanded = Annotated[frozenset[Property], Depends(_expanded)]


async def _information_request(
    expanded: _Expanded,
    *,
    blobs: Annotated[bool, _BLOBS] = False,
    security: Annotated[bool, _SECURITY] = False,
) -> InformationRequest:
    return InformationRequest(
        properties=expanded or IN_DETAIL, with_blobs=blobs, with_security=security
    )


RequestedInformation = Annotated[InformationRequest, Depends(_information_request)]


async def _list_properties(
    expanded: _Expanded,
    *,
    full: bool = False,
    card_data: Annotated[bool, Query(alias="cardData")] = False,
) -> frozenset[Property]:
    usual = IN_LISTS | {Property.card_data} if full or card_data else IN_LISTS
    return expanded or usual


ListProperties = Annotated[frozenset[Property], Depends(_list_properties)]
