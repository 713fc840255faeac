"""HTTP for information about repositories, one by one and in lists."""

from dataclasses import replace

from fastapi import Response

from hublet.core.database import Reader
from hublet.core.http import Db, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import GIT_REPO, GIT_REPOS, GIT_TAGS, MOVED, GitRepo, GitRepoKind
from hublet.repos.browse import information, lists, store
from hublet.repos.browse.auth import (
    ListPage,
    ListProperties,
    RequestedFilter,
    RequestedInformation,
    RequestedOrder,
)
from hublet.repos.browse.lists import write_list_cursor, write_owner_list_cursor
from hublet.repos.browse.schemas import OwnRepo, RepoInfo, render_information
from hublet.repos.errors import RepoNotFound
from hublet.repos.records import Right
from hublet.tokens.auth import AnyCaller, MaybeCaller

router = Router(tags=GIT_TAGS, responses=MOVED)


@router.get(GIT_REPO, response_model=RepoInfo)
async def get_repo(
    database: Db, caller: MaybeCaller, address: GitRepo, asked: RequestedInformation
) -> Response:
    """Tell what is known of a repository, with the files of its main branch."""
    info = await information.get_info(database, caller, address, asked)
    return Response(info, media_type="application/json")


@router.get(f"{GIT_REPO}/revision/{{rev:path}}", response_model=RepoInfo)
async def get_repo_revision(
    database: Db, caller: MaybeCaller, address: GitRepo, rev: str, asked: RequestedInformation
) -> Response:
    """Tell what is known of a repository, with its files at a branch, a tag or a commit."""
    info = await information.get_info(database, caller, address, replace(asked, revision=rev))
    return Response(info, media_type="application/json")


@router.get(f"{GIT_REPO}/auth-check")
async def check_read_access(conn: ReadConn, caller: MaybeCaller, address: GitRepo) -> Done:
    """Tell whether the caller may read the content of a repository."""
    await repos.get(conn, caller, address, Right.read)
    return Done()


@router.get(f"{GIT_REPO}/auth-check/write")
async def check_write_access(conn: ReadConn, caller: MaybeCaller, address: GitRepo) -> Done:
    """Tell whether the caller may change the content of a repository."""
    await repos.get(conn, caller, address, Right.write)
    return Done()


@router.get("/api/{kind:kind}/{name:lone}")
async def get_repo_without_owner(kind: GitRepoKind, name: str) -> Done:
    """Answer 404: a repository of this hub has an owner, in the form `owner/name`."""
    raise RepoNotFound(kind.type, name)


lists_router = Router()


@lists_router.get(GIT_REPOS, tags=GIT_TAGS, responses=PAGED_RESPONSES)
async def list_repos(
    conn: ReadConn,
    caller: MaybeCaller,
    wanted: RequestedFilter,
    order: RequestedOrder,
    page: ListPage,
    shown: ListProperties,
) -> list[RepoInfo]:
    """List the repositories of a type that the caller may see, page by page, newest first.

    Files are not listed: a repository's own page and its tree have them.
    """
    found = await lists.list_repos(
        conn, caller, wanted, order=order, after=page.after, limit=page.reach
    )
    repos = page.cut(found, position=lambda repo: write_list_cursor(repo, order.sort))
    return [RepoInfo.model_validate(render_information(repo, shown)) for repo in repos]


@lists_router.get("/api/settings/repositories", tags=["users"], responses=PAGED_RESPONSES)
async def list_own_repos(conn: ReadConn, caller: AnyCaller, page: ListPage) -> list[OwnRepo]:
    """List the caller's own repositories of all types, with the space they take."""
    return await _list_owned(conn, caller, page, organization=None)


@lists_router.get(
    "/api/organizations/{name}/settings/repositories", tags=["orgs"], responses=PAGED_RESPONSES
)
async def list_organization_repos(
    conn: ReadConn, caller: AnyCaller, name: str, page: ListPage
) -> list[OwnRepo]:
    """List those repositories of an organization that the caller, a member, may see."""
    return await _list_owned(conn, caller, page, organization=name)


async def _list_owned(
    conn: Reader, caller: AnyCaller, page: ListPage, *, organization: str | None
) -> list[OwnRepo]:
    owner_id = await lists.get_owner_id(conn, caller, organization)
    found = await lists.list_of_owner(conn, caller, owner_id, after=page.after, limit=page.reach)
    all_bytes = await store.size_of_owner(conn, owner_id)
    repos = page.cut(found, position=write_owner_list_cursor)
    return [OwnRepo.of(repo, all_bytes=all_bytes) for repo in repos]
