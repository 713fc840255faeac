"""HTTP for lists of repositories."""

from hublet.core.database import Reader
from hublet.core.http import ReadConn, Router
from hublet.core.http.paging import LINKED
from hublet.repos.auth import GIT_REPOS, GIT_TAGS
from hublet.repos.information.auth import ShownInList
from hublet.repos.information.schemas import RepoInfo, info_of
from hublet.repos.lists import service, store
from hublet.repos.lists.auth import AskedOrder, AskedRepos, ListPage
from hublet.repos.lists.positions import write_own_position, write_position
from hublet.repos.lists.schemas import OwnRepo
from hublet.tokens.auth import AnyCaller, MaybeCaller

router = Router()


@router.get(GIT_REPOS, tags=GIT_TAGS, responses=LINKED)
async def list_repos(
    conn: ReadConn,
    caller: MaybeCaller,
    wanted: AskedRepos,
    order: AskedOrder,
    page: ListPage,
    shown: ShownInList,
) -> list[RepoInfo]:
    """List the repositories of a type that the caller may see, page by page, newest first.

    Files are not listed: a repository's own page and its tree have them.
    """
    found = await service.list_repos(
        conn, caller, wanted, order=order, after=page.after, limit=page.reach
    )
    repos = page.cut(found, position=lambda repo: write_position(repo, order.sort))
    return [RepoInfo.model_validate(info_of(repo, shown)) for repo in repos]


@router.get("/api/settings/repositories", tags=["users"], responses=LINKED)
async def list_own_repos(conn: ReadConn, caller: AnyCaller, page: ListPage) -> list[OwnRepo]:
    """List the caller's own repositories of all types, with the space they take."""
    return await _owned(conn, caller, page, organization=None)


@router.get("/api/organizations/{name}/settings/repositories", tags=["orgs"], responses=LINKED)
async def list_organization_repos(
    conn: ReadConn, caller: AnyCaller, name: str, page: ListPage
) -> list[OwnRepo]:
    """List those repositories of an organization that the caller, a member, may see."""
    return await _owned(conn, caller, page, organization=name)


async def _owned(
    conn: Reader, caller: AnyCaller, page: ListPage, *, organization: str | None
) -> list[OwnRepo]:
    owner_id = await service.get_owner_id(conn, caller, organization)
    found = await service.list_of_owner(conn, caller, owner_id, after=page.after, limit=page.reach)
    all_bytes = await store.size_of_owner(conn, owner_id)
    repos = page.cut(found, position=write_own_position)
    return [OwnRepo.of(repo, all_bytes=all_bytes) for repo in repos]
