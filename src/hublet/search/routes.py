"""HTTP for the quick search."""

from typing import Annotated

from fastapi import Depends, Query

from hublet.core.http import ReadConn, Router
from hublet.search.quick_search import quick_search
from hublet.search.schemas import (
    DEFAULT_SHOWN,
    LONGEST_Q,
    MOST_SHOWN,
    ExcludedName,
    OrgsFilter,
    QuickSearchRequest,
    QuickSearchResult,
    QuickSearchType,
    ReposFilter,
    ShortText,
)
from hublet.tokens.auth import MaybeCaller

router = Router(prefix="/api/quicksearch", tags=["repo-search"])
ROUTERS: tuple[Router, ...] = (router,)


async def _request(  # noqa: PLR0913 - FastAPI reads the query from the signature
    *,
    q: Annotated[str, Query(max_length=LONGEST_Q, description="Words, all of them.")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_SHOWN, description="Of each kind.")] = DEFAULT_SHOWN,
    type_: Annotated[
        list[QuickSearchType] | None, Query(alias="type", max_length=20, description="All kinds.")
    ] = None,
    namespace: Annotated[ShortText, Query(description="Repositories of this owner.")] = "",
    exclude: Annotated[
        list[ExcludedName] | None,
        Query(max_length=100, description="As in models/ada/engine, users/ada, orgs/acme."),
    ] = None,
    repos_filter: Annotated[
        list[ReposFilter] | None, Query(alias="reposFilter", max_length=5)
    ] = None,
    orgs_filter: Annotated[list[OrgsFilter] | None, Query(alias="orgsFilter", max_length=2)] = None,
    pipelines: Annotated[list[ShortText] | None, Query(max_length=20)] = None,
    lang: ShortText = "",
    library: ShortText = "",
    spaces_tags: Annotated[list[ShortText] | None, Query(alias="spacesTags", max_length=20)] = None,
) -> QuickSearchRequest:
    return QuickSearchRequest.model_validate(
        {
            "q": q,
            "limit": limit,
            "type": type_ or (),
            "namespace": namespace,
            "exclude": exclude or (),
            "reposFilter": repos_filter or (),
            "orgsFilter": orgs_filter or (),
            "pipelines": pipelines or (),
            "lang": lang,
            "library": library,
            "spacesTags": spaces_tags or (),
        }
    )


@router.get("")
async def search_quickly(
    conn: ReadConn, caller: MaybeCaller, request: Annotated[QuickSearchRequest, Depends(_request)]
) -> QuickSearchResult:
    """Find repositories, people, organizations and papers by words, the best of each kind.

    A word also finds what begins with it, whatever the case and accents. Where nothing is found, words
    that are mistyped by one letter are corrected. Nobody finds what they may not see.
    """
    return await _result(conn, caller, request)


@router.post("")
async def search_quickly_by_body(
    conn: ReadConn, caller: MaybeCaller, request: QuickSearchRequest
) -> QuickSearchResult:
    """Find the same as GET, for more than fits into an address."""
    return await _result(conn, caller, request)


async def _result(
    conn: ReadConn, caller: MaybeCaller, request: QuickSearchRequest
) -> QuickSearchResult:
    sections = await quick_search(conn, caller, request)
    return QuickSearchResult.of(request.q, sections, base_url=conn.hub.settings.base_url)
