"""HTTP for the large files of a repository: list, delete for good, copy."""

from typing import Annotated, Any

from fastapi import Path

from hublet.core.http import Conn, Db, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.repos.auth import GIT_REPO, GIT_TAGS, MOVED, GitRepo
from hublet.repos.lfs import management
from hublet.repos.lfs.schemas import (
    ChangeLfsFiles,
    CopiedLfsFiles,
    CopyLfsFiles,
    FailedCopy,
    ListedLfsFile,
)
from hublet.repos.names import split_name
from hublet.repos.records import RepoAddress, RepoType
from hublet.tokens.auth import AnyCaller

_MOVED_ON: dict[int | str, dict[str, Any]] = {
    409: {"description": "Somebody pushed while history was rewritten; repeat the request."}
}

router = Router(prefix=GIT_REPO, tags=GIT_TAGS, responses=MOVED)


@router.get("/lfs-files", responses=PAGED_RESPONSES)
async def list_lfs_files(
    database: Db, caller: AnyCaller, address: GitRepo, page: PageQuery
) -> list[ListedLfsFile]:
    """List the large files that a repository has, in any of its commits; for its writers."""
    found = await management.list_files(
        database, caller, address, after=page.after, limit=page.reach
    )
    shown = page.cut(found, position=lambda file: file.blob.sha256)
    return [ListedLfsFile.of(file) for file in shown]


@router.post("/lfs-files/batch", responses=_MOVED_ON)
async def delete_lfs_files(
    database: Db, caller: AnyCaller, address: GitRepo, body: ChangeLfsFiles
) -> Done:
    """Delete the content of large files for good, from every commit of the repository.

    With `rewriteHistory` no commit shows that they ever were there: commits get new names.
    """
    wanted = body.deletions
    await management.delete(
        database, caller, address, wanted.sha, rewrite_history=wanted.rewriteHistory
    )
    return Done()


@router.delete("/lfs-files/{sha}", responses=_MOVED_ON)
async def delete_lfs_file(
    database: Db,
    caller: AnyCaller,
    address: GitRepo,
    sha: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")],
    *,
    rewriteHistory: bool = False,  # noqa: N803 - a name on the wire
) -> Done:
    """Delete the content of one large file for good, from every commit of the repository."""
    await management.delete(database, caller, address, [sha], rewrite_history=rewriteHistory)
    return Done()


@router.post("/lfs-files/duplicate")
async def copy_lfs_files(
    conn: Conn, caller: AnyCaller, address: GitRepo, body: CopyLfsFiles
) -> CopiedLfsFiles:
    """Let another repository use large files of this one without sending them again."""
    namespace, name = split_name(body.target.name)
    target = RepoAddress(
        type=RepoType(body.target.type), namespace=namespace or caller.user_name, name=name
    )
    digests = [file.sha256 for file in body.files]
    missing = await management.copy(conn, caller, address, target, digests)
    sentence = "The repository has no such file."
    return CopiedLfsFiles(failed=[FailedCopy(sha256=each, error=sentence) for each in missing])
