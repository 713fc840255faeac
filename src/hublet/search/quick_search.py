"""Quick search: the request of the public service turned into a query, and its result."""

from hublet.community.discussions import store as discussions
from hublet.community.threads import store as threads
from hublet.core.database import Reader
from hublet.core.errors import HubError
from hublet.notifications import watches_store
from hublet.repos import gating_store
from hublet.repos import service as repos
from hublet.repos.browse import lists
from hublet.repos.browse import store as lists_store
from hublet.repos.records import RepoAddress, RepoType, Right
from hublet.search import service
from hublet.search.records import SearchFilters, SearchKind, SearchQuery, SearchSection
from hublet.search.schemas import QUICK_KINDS, QuickSearchRequest
from hublet.tokens.records import Caller

_REPO_TYPES = tuple(RepoType)
_MOST_GRANTED = 1000
_MOST_PARTICIPANTS = 100


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
        preferred_users=await _participants(conn, caller, request),
    )
    return await service.search_kinds(conn, caller, query)


async def _filters(
    conn: Reader, caller: Caller | None, request: QuickSearchRequest
) -> SearchFilters:
    own = [caller.user_id] if caller else []
    organizations = list(await lists_store.roles_of_user(conn, caller.user_id)) if caller else []
    wanted = set(request.reposFilter)
    owners = [
        *(own if "own" in wanted else ()),
        *(organizations if "own_orgs" in wanted else ()),
    ]
    granted, watched = list[str](), set[str]()
    if caller and "granted_access" in wanted:
        granted = await gating_store.list_granted_ids(
            conn, user_id=caller.user_id, limit=_MOST_GRANTED
        )
    if caller and "unwatched" in request.orgsFilter:
        watched = await watches_store.list_watched_organizations(conn, user_id=caller.user_id)
    return SearchFilters(
        namespace=request.namespace,
        tags=_tags(request),
        any_tags={SearchKind.model: _pipelines(request)},
        gated=False if "skip_gated" in wanted else None,
        owner_ids=tuple(owners) if wanted & {"own", "own_orgs", "granted_access"} else None,
        organization_ids=tuple(organizations) if "own" in request.orgsFilter else None,
        repo_ids=frozenset(granted),
        without_organizations=frozenset(watched),
    )


def _pipelines(request: QuickSearchRequest) -> tuple[str, ...]:
    """Return the tasks; the public service also takes them in one text, with commas."""
    named = (each.strip() for text in request.pipelines for each in text.split(","))
    return tuple(dict.fromkeys(filter(None, named)))


def _tags(request: QuickSearchRequest) -> dict[SearchKind, tuple[str, ...]]:
    of_datasets = [f"language:{request.lang}" if request.lang else ""]
    return {
        SearchKind.model: tuple(filter(None, [request.library, request.lang])),
        SearchKind.dataset: tuple(filter(None, of_datasets)),
        SearchKind.space: tuple(filter(None, request.spacesTags)),
    }


async def _participants(
    conn: Reader, caller: Caller | None, request: QuickSearchRequest
) -> tuple[str, ...]:
    """Return who takes part in the discussion or repository that the request names.

    Of what the caller may not see there is nobody, as of what does not exist.
    """
    found = list[str]()
    if request.discussionId and await _may_read(conn, caller, request.discussionId):
        parts = await threads.list_participants(conn, request.discussionId)
        found += [part.user_id for part in parts[:_MOST_PARTICIPANTS]]
    if request.repoName and request.repoType in _REPO_TYPES:
        namespace, _, name = request.repoName.partition("/")
        address = RepoAddress(type=RepoType(request.repoType), namespace=namespace, name=name)
        try:
            repo = await repos.get(conn, caller, address, Right.see)
        except HubError:
            return tuple(found)
        found += await discussions.list_participants_in_repo(
            conn, repo.id, limit=_MOST_PARTICIPANTS
        )
    return tuple(dict.fromkeys(found))


async def _may_read(conn: Reader, caller: Caller | None, thread_id: str) -> bool:
    thread = await threads.find(conn, thread_id)
    if thread is None or thread.repo_id is None:
        return thread is not None
    return bool(await lists.list_visible(conn, caller, [thread.repo_id]))
