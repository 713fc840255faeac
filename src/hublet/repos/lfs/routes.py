"""HTTP for Git LFS: what to send and to get, and where."""

from fastapi.responses import JSONResponse

from hublet.core.errors import NotImplementedHere
from hublet.core.http import ReadConn, Router
from hublet.core.schema import Done
from hublet.repos.auth import MOVED, ROOT_REPO, RootRepo
from hublet.repos.lfs import service
from hublet.repos.lfs.links import DOWNLOAD_LIFE, UPLOAD_LIFE
from hublet.repos.lfs.records import Wanted
from hublet.repos.lfs.schemas import (
    LfsBatch,
    LfsBatchAnswer,
    ListedLocks,
    VerifiedLocks,
    VerifyLocks,
    VerifyObject,
)
from hublet.repos.records import Right
from hublet.repos.smart_http import service as git
from hublet.tokens.auth import GitCaller


class LfsResponse(JSONResponse):
    media_type = "application/vnd.git-lfs+json"


_LFS = ROOT_REPO + "/info/lfs"

router = Router(tags=["repos"], responses=MOVED, default_response_class=LfsResponse)


@router.post(_LFS + "/objects/batch")
async def prepare_lfs_transfers(
    conn: ReadConn, caller: GitCaller, address: RootRepo, body: LfsBatch
) -> LfsBatchAnswer:
    """Ask where to send or to get large files, by the SHA-256 of their content.

    Objects without actions are on the hub already. A token may be sent as a password, too.
    """
    wanted = [Wanted(oid=each.oid, size=each.size) for each in body.objects]
    if body.operation == "download":
        answers = await service.batch_to_download(conn, caller, address, wanted)
        return LfsBatchAnswer.of(answers, life=DOWNLOAD_LIFE)
    in_parts = "multipart" in body.transfers
    answers = await service.batch_to_upload(conn, caller, address, wanted, in_parts=in_parts)
    return LfsBatchAnswer.of(answers, life=UPLOAD_LIFE)


@router.post(_LFS + "/objects/verify")
async def verify_lfs_object(
    conn: ReadConn, caller: GitCaller, address: RootRepo, body: VerifyObject
) -> Done:
    """Check that a large file arrived, whole."""
    await service.verify(conn, caller, address, Wanted(oid=body.oid, size=body.size))
    return Done()


@router.get(_LFS + "/locks")
async def list_lfs_locks(conn: ReadConn, caller: GitCaller, address: RootRepo) -> ListedLocks:
    """List the locks of a repository: there are none on this hub."""
    await git.get(conn, caller, address, Right.read)
    return ListedLocks()


@router.post(_LFS + "/locks/verify")
async def verify_lfs_locks(
    conn: ReadConn, caller: GitCaller, address: RootRepo, _body: VerifyLocks
) -> VerifiedLocks:
    """Tell whose locks are in the way of a push: nobody's on this hub."""
    await git.get(conn, caller, address, Right.write)
    return VerifiedLocks()


@router.post(_LFS + "/locks", responses={501: {"description": "This hub has no locks."}})
async def create_lfs_lock(conn: ReadConn, caller: GitCaller, address: RootRepo) -> Done:
    """Lock a file; this hub refuses, because it has no locks."""
    await git.get(conn, caller, address, Right.write)
    raise NotImplementedHere("This hub has no locks: a push is refused when another was faster.")
