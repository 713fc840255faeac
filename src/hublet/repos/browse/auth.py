"""Parameters of browsing as annotated types: revision, path, page, filter, order, properties."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response
from pydantic import Field

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
    IN_FILES,
    IN_LISTS,
    IN_RELATIONS,
    LinkFilter,
    ListOrder,
    ListSort,
    ParameterRange,
    Property,
    RepoFilter,
    Revision,
)
from hublet.repos.browse.revisions import read_tree_cursor, split_revision_and_path
from hublet.repos.records import LinkKind
from hublet.repos.safetensors import MAX_PARAMETERS
from hublet.tokens.auth import MaybeCaller

# The end of a path: a revision with a path in it, or a revision alone.
IN_REVISION = "/{rest:revision}"
REVISION = "/{rev:revision}"

LARGEST_PAGE = 1000
# A page whose items each need a search of the history.
LARGEST_EXPANDED_PAGE = 50
# The public client asks for as many as its caller wants in all, and goes on page by page.
LARGEST_LIST_PAGE = 1000
# A page whose repositories each need a look into their files, or at others.
LARGEST_DETAILED_PAGE = 50
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
    "trendingScore": ListSort.trend,
}
SortName = Literal["createdAt", "lastModified", "likes", "downloads", "trendingScore"]
_Text = Annotated[str, Query(max_length=200)]

_Texts = list[Annotated[str, Field(max_length=200)]] | None
_MOST_VALUES = 20

_BOUND = re.compile(r"(min|max):([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMBT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


async def _list_page(
    request: Request,
    response: Response,
    limit: Annotated[
        int,
        Query(
            ge=1,
            description=f"A page has at most {LARGEST_LIST_PAGE}, whatever is asked for; with files "
            f"or related repositories at most {LARGEST_DETAILED_PAGE}.",
        ),
    ] = DEFAULT_LIMIT,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(
        after=after, limit=min(limit, LARGEST_LIST_PAGE), _request=request, _response=response
    )


ListPage = Annotated[Page, Depends(_list_page)]


def _parameter_range(text: str) -> ParameterRange | None:
    """Read `min:6B,max:128B`, of which either part may be missing."""
    if not text:
        return None
    bounds: dict[str, int] = {}
    for part in text.split(","):
        match = _BOUND.fullmatch(part.strip())
        if match is None or match[1].lower() in bounds:
            raise InvalidRequest(
                "num_parameters must be in the form min:6B,max:128B; either part may be missing, "
                "and numbers may end in K, M, B or T."
            )
        number = int(Decimal(match[2]) * _UNITS[match[3].upper()])
        bounds[match[1].lower()] = min(number, MAX_PARAMETERS)
    least, most = bounds.get("min", 0), bounds.get("max", MAX_PARAMETERS)
    if least > most:
        raise InvalidRequest("num_parameters must not have a larger min than max.")
    return ParameterRange(least=least, most=most)


async def _served(
    apps: Annotated[_Texts, Query(max_length=_MOST_VALUES)] = None,
    inference: _Text = "",
    inference_provider: Annotated[_Texts, Query(max_length=_MOST_VALUES)] = None,
) -> bool:
    """Tell whether only models are asked for that run somewhere: none does, so the list is empty."""
    return bool(apps or inference or inference_provider)


async def _links(
    models: Annotated[
        _Texts, Query(max_length=_MOST_VALUES, description="Models that the card names, all.")
    ] = None,
    datasets: Annotated[
        _Texts, Query(max_length=_MOST_VALUES, description="Datasets that the card names, all.")
    ] = None,
    *,
    linked: Annotated[bool, Query(description="Only with any model or dataset.")] = False,
) -> tuple[LinkFilter, ...]:
    named = [
        *((LinkKind.model, name) for name in models or ()),
        *((LinkKind.dataset, name) for name in datasets or ()),
        *([(LinkKind.linked, "")] if linked else []),
    ]
    return tuple(LinkFilter(kind=kind, targets=(name.casefold(),)) for kind, name in named)


async def _filter(  # noqa: PLR0913 - FastAPI reads the query from the signature
    type_: GitRepoType,
    links: Annotated[tuple[LinkFilter, ...], Depends(_links)],
    is_served: Annotated[bool, Depends(_served)],
    *,
    search: Annotated[
        _Texts, Query(max_length=_MOST_VALUES, description="Words, all of them in owner/name.")
    ] = None,
    author: _Text = "",
    filter_: Annotated[
        _Texts, Query(alias="filter", max_length=_MOST_VALUES, description="Tags, all of them.")
    ] = None,
    pipeline_tag: _Text = "",
    num_parameters: Annotated[
        str,
        Query(max_length=200, description="As in `min:6B,max:128B`; gated models are left out."),
    ] = "",
    gated: bool | None = None,
) -> RepoFilter:
    words = [word for text in search or () for word in text.split()]
    tags = [*(filter_ or ()), *([pipeline_tag] if pipeline_tag else [])]
    return RepoFilter(
        type=type_,
        author=author,
        words=tuple(words[:_MOST_VALUES]),
        tags=tuple(tags),
        gated=gated,
        links=links,
        parameters=_parameter_range(num_parameters),
        is_served=is_served,
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
    full: Annotated[bool, Query(description="With the card and the files.")] = False,
    card_data: Annotated[bool, Query(alias="cardData")] = False,
    config: Annotated[bool, Query(description="With the essence of config.json.")] = False,
) -> frozenset[Property]:
    asked = {
        Property.card_data: full or card_data,
        Property.config: config,
        Property.siblings: full,
    }
    return expanded or IN_LISTS | {name for name, is_asked in asked.items() if is_asked}


ListProperties = Annotated[frozenset[Property], Depends(_list_properties)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoListRequest:
    """The part of a list of repositories that a request asks for, and what of each."""

    filters: RepoFilter
    order: ListOrder
    page: Page
    properties: frozenset[Property]


async def _list_request(
    filters: RequestedFilter, order: RequestedOrder, page: ListPage, properties: ListProperties
) -> RepoListRequest:
    if not properties.isdisjoint(IN_FILES | IN_RELATIONS):
        page = replace(page, limit=min(page.limit, LARGEST_DETAILED_PAGE))
    return RepoListRequest(filters=filters, order=order, page=page, properties=properties)


RequestedList = Annotated[RepoListRequest, Depends(_list_request)]
