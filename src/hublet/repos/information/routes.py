"""HTTP for what is known of a repository."""

from dataclasses import replace

from fastapi import Response

from hublet.core.http import Db, ReadConn, Router
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo, GitRepoKind
from hublet.repos.errors import RepoNotFound
from hublet.repos.information import service
from hublet.repos.information.auth import AskedInfo
from hublet.repos.information.schemas import RepoInfo
from hublet.repos.records import Right
from hublet.tokens.auth import MaybeCaller

router = Router(tags=GIT_TAGS, responses=MOVED)


@router.get(GIT_REPO, response_model=RepoInfo)
async def get_repo(
    database: Db, caller: MaybeCaller, address: GitRepo, asked: AskedInfo
) -> Response:
    """Tell what is known of a repository, with the files of its main branch."""
    info = await service.get_info(database, caller, address, asked)
    return Response(info, media_type="application/json")


@router.get(f"{GIT_REPO}/revision/{{rev:path}}", response_model=RepoInfo)
async def get_repo_revision(
    database: Db, caller: MaybeCaller, address: GitRepo, rev: str, asked: AskedInfo
) -> Response:
    """Tell what is known of a repository, with its files at a branch, a tag or a commit."""
    info = await service.get_info(database, caller, address, replace(asked, revision=rev))
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
