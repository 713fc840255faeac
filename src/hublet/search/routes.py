"""HTTP for search: quick search, full text, trending lists and lists of spaces."""

from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response

from hublet.core.http import Db, PublicReadConn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, Page
from hublet.core.paging import read_cursor
from hublet.repos.records import RepoType
from hublet.search import discovery, full_text
from hublet.search.quick_search import quick_search
from hublet.search.records import TextKind, TextQuery
from hublet.search.schemas import (
    DEFAULT_SHOWN,
    DEFAULT_TEXTS,
    LONGEST_Q,
    MOST_SHOWN,
    MOST_TEXTS,
    ExcludedName,
    FoundText,
    OrgsFilter,
    QuickSearchRequest,
    QuickSearchResult,
    QuickSearchType,
    ReposFilter,
    ShortText,
    SpaceHardwareFlavor,
    SpaceTemplates,
    TrendingList,
    TrendingRepoData,
)
from hublet.tokens.auth import MaybeCaller

router = Router(prefix="/api/quicksearch", tags=["repo-search"])
texts_router = Router(tags=["repo-search"])
spaces_router = Router(prefix="/api/spaces", tags=["spaces"])
ROUTERS: tuple[Router, ...] = (router, texts_router, spaces_router)


_PARTICIPANTS = "Users who take part there come first, if the caller may see it."
_INVITEES = "Nothing changes: whoever has an account is found, invited or not."


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
    repo_name: Annotated[ShortText, Query(alias="repoName", description=_PARTICIPANTS)] = "",
    repo_type: Annotated[ShortText, Query(alias="repoType")] = "",
    discussion_id: Annotated[
        ShortText, Query(alias="discussionId", description=_PARTICIPANTS)
    ] = "",
    invitees: Annotated[bool, Query(alias="includeInvitees", description=_INVITEES)] = False,
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
            "repoName": repo_name,
            "repoType": repo_type,
            "discussionId": discussion_id,
            "includeInvitees": invitees,
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


async def _text_page(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=MOST_TEXTS)] = DEFAULT_TEXTS,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(after=after, limit=limit, _request=request, _response=response)


@texts_router.get("/api/search/full-text", responses=PAGED_RESPONSES)
async def search_full_text(
    database: Db,
    caller: MaybeCaller,
    page: Annotated[Page, Depends(_text_page)],
    q: Annotated[str, Query(max_length=LONGEST_Q, description="Whole words, all of them.")] = "",
    type_: Annotated[
        list[TextKind] | None, Query(alias="type", max_length=20, description="All kinds.")
    ] = None,
) -> list[FoundText]:
    """Find whole cards, `app.py` of spaces, discussions with their comments, and papers.

    The best come first: those where the words are many, the text short and the repository liked. Of each
    query, at most 2,000 texts are compared. The commonest words are ignored. Cards of gated repositories
    and hidden comments are not found.
    """
    kinds = tuple(dict.fromkeys(type_ or TextKind))
    query = TextQuery(text=q, kinds=kinds, limit=page.limit, after=page.after)
    found = await full_text.search_texts(database, caller, query)
    if found.end is not None:
        page.link(full_text.write_position(found.end))
    base_url = database.hub.settings.base_url
    return [FoundText.of(hit, base_url=base_url) for hit in found.hits]


@texts_router.get("/api/trending")
async def list_trending(
    conn: PublicReadConn,
    caller: MaybeCaller,
    type_: Annotated[Literal["all", "model", "dataset", "space"], Query(alias="type")] = "all",
    limit: Annotated[int, Query(ge=1, le=MOST_SHOWN)] = DEFAULT_SHOWN,
) -> TrendingList:
    """List the public repositories of the moment: likes and downloads of the last seven days count."""
    types = discovery.TRENDING_TYPES if type_ == "all" else (RepoType(type_),)
    return TrendingList.of(await discovery.list_trending(conn, caller, types, limit=limit))


@spaces_router.get("/semantic-search")
async def search_spaces(
    database: Db,
    caller: MaybeCaller,
    *,
    q: Annotated[str, Query(max_length=LONGEST_Q, description="Words, all of them.")] = "",
    filter_: Annotated[
        list[ShortText] | None,
        Query(alias="filter", max_length=20, description="Tags, all of them."),
    ] = None,
    sdk: Annotated[list[ShortText] | None, Query(max_length=20, description="Any of them.")] = None,
    non_running: Annotated[  # noqa: ARG001 - described
        bool,
        Query(
            alias="includeNonRunning",
            description="Nothing changes: this hub runs no spaces, and shows all of them.",
        ),
    ] = False,
) -> list[TrendingRepoData]:
    """Find spaces by words of their names, tags, cards and programs, the best first.

    It is the search by words of this hub: there is no model that knows what words mean.
    """
    found = await discovery.search_spaces(database, caller, q, tags=filter_ or (), sdks=sdk or ())
    return [TrendingRepoData.of(each) for each in found]


@spaces_router.get("/featured")
async def list_featured_spaces(conn: PublicReadConn, caller: MaybeCaller) -> list[TrendingRepoData]:
    """List the public spaces of the moment: nobody picks spaces by hand here."""
    found = await discovery.list_trending(conn, caller, [RepoType.space], limit=MOST_SHOWN)
    return [TrendingRepoData.of(each) for each in found]


@spaces_router.get("/hardware")
async def list_space_hardware() -> list[SpaceHardwareFlavor]:
    """List the machines for spaces: none, as this hub does not run them; see /api/jobs/hardware."""
    return []


@spaces_router.get("/templates")
async def list_space_templates() -> SpaceTemplates:
    """List the spaces to begin with: none, as a new space begins with its card alone."""
    return SpaceTemplates(templates=[])
