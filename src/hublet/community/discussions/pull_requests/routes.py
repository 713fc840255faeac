"""HTTP for what only pull requests have: merging, and their refs."""

from pydantic import MISSING

from hublet.community.discussions import service as discussions
from hublet.community.discussions.auth import DISCUSSIONS, STANDS, Num
from hublet.community.discussions.pull_requests import merging, service
from hublet.community.discussions.pull_requests.schemas import MergedPullRequest, MergePullRequest
from hublet.core.http import Conn, Db, Router
from hublet.core.schema import Done
from hublet.repos.auth import MOVED, GitRepo
from hublet.repos.records import Right
from hublet.tokens.auth import AnyCaller

router = Router(prefix=DISCUSSIONS, tags=["discussions"], responses=MOVED)


@router.post("/{num}/merge", responses=STANDS)
async def merge_pull_request(
    database: Db, caller: AnyCaller, repo: GitRepo, num: Num, body: MergePullRequest | None = None
) -> MergedPullRequest:
    """Merge a pull request into its branch; files that conflict are named in a 409."""
    comment = None if body is None or body.comment is MISSING else body.comment
    oid = await merging.merge(database, caller, repo, num, comment=comment)
    return MergedPullRequest(mergeCommitId=oid)


@router.delete("/{num}/ref", responses=STANDS)
async def delete_pull_request_ref(conn: Conn, caller: AnyCaller, repo: GitRepo, num: Num) -> Done:
    """Delete the git ref of a pull request that is closed or merged; its page stays."""
    discussion = await discussions.get_for_change(conn, caller, repo, num, right=Right.write)
    await service.delete_ref(conn, caller, discussion)
    return Done()
