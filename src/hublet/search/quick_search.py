"""Quick search: the request of the public service turned into a query, and its result."""

from hublet.core.database import Reader
from hublet.core.errors import InvalidRequest
from hublet.repos.browse import store as lists_store
from hublet.search import service
from hublet.search.records import SearchFilters, SearchKind, SearchQuery, SearchSection
from hublet.search.schemas import QUICK_KINDS, QuickSearchRequest
from hublet.tokens.records import Caller


async def quick_search(
    conn: Reader, caller: Caller | None, request: QuickSearchRequest
) -> dict[SearchKind, SearchSection]:
    """Return the first hits of each kind that the request names, or of all."""
    # Of kinds that the hub does not have there are none.
    kinds = tuple(kind for kind in QUICK_KINDS if not request.type or kind in request.type)
    query = SearchQuery(
        text=request.q,
        kinds=kinds,
        filters=await _filters(conn, caller, request),
        limit=request.limit,
        exclude=frozenset(request.exclude),
    )
    return await service.search_kinds(conn, caller, query)


async def _filters(
    conn: Reader, caller: Caller | None, request: QuickSearchRequest
) -> SearchFilters:
    _check_supported(request)
    own = [caller.user_id] if caller else []
    organizations = list(await lists_store.roles_of_user(conn, caller.user_id)) if caller else []
    wanted = request.reposFilter
    owners = [
        *(own if "own" in wanted else ()),
        *(organizations if "own_orgs" in wanted else ()),
    ]
    return SearchFilters(
        namespace=request.namespace,
        tags=_tags(request),
        gated=False if "skip_gated" in wanted else None,
        owner_ids=tuple(owners) if {"own", "own_orgs"} & set(wanted) else None,
        organization_ids=tuple(organizations) if "own" in request.orgsFilter else None,
    )


def _check_supported(request: QuickSearchRequest) -> None:
    """Refuse what this hub does not know: a list that ignores a filter would be wrong."""
    unsupported = {
        "reposFilter: this hub cannot filter by granted_access.": (
            "granted_access" in request.reposFilter
        ),
        "orgsFilter: this hub cannot filter by unwatched.": "unwatched" in request.orgsFilter,
        "pipelines: this hub cannot filter by more than one.": len(request.pipelines) > 1,
    }
    for sentence, is_asked in unsupported.items():
        if is_asked:
            raise InvalidRequest(sentence)


def _tags(request: QuickSearchRequest) -> dict[SearchKind, tuple[str, ...]]:
    of_models = [*request.pipelines, request.library, request.lang]
    of_datasets = [f"language:{request.lang}" if request.lang else ""]
    return {
        SearchKind.model: tuple(filter(None, of_models)),
        SearchKind.dataset: tuple(filter(None, of_datasets)),
        SearchKind.space: tuple(filter(None, request.spacesTags)),
    }
