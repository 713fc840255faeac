"""Merge of a pull request into its base: git objects on the disk first, then the refs."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hublet.community.discussions import comparison, pull_requests, service, store
from hublet.community.discussions.comparison import MergeRequest, Sides
from hublet.community.discussions.records import OPEN_STATUSES, DiscussionRecord, PullRequestCommit
from hublet.community.errors import PullRequestRefDeleted, StatusUnchanged
from hublet.community.threads.records import ThreadStatus
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos.cards import read_card
from hublet.repos.errors import RefChanged
from hublet.repos.records import HEADS, Card, RefTransaction, RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.repos.service import git_folder
from hublet.tokens.records import Caller

# How often a merge is retried because one of the refs moved meanwhile.
RETRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    discussion: DiscussionRecord
    sides: Sides


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The merge commit that git wrote; None when the base contained the head already."""

    sides: Sides
    commit: PullRequestCommit | None
    card: Card | None


async def merge_into_base(
    database: Database, caller: Caller, address: RepoAddress, number: int, *, comment: str | None
) -> str:
    """Merge a pull request, draft or not, into its base; return the merge commit."""
    for _ in range(RETRIES):
        with suppress(RefChanged):
            return await _try_merge(database, caller, address, number, comment=comment)
    return await _try_merge(database, caller, address, number, comment=comment)


async def _try_merge(
    database: Database, caller: Caller, address: RepoAddress, number: int, *, comment: str | None
) -> str:
    async with database.read() as conn:
        plan = await _plan(conn, caller, address, number)
    folder = git_folder(database, plan.discussion.repo.id)
    merged = await asyncio.to_thread(_write_merge, folder, plan, author=caller.user_name)
    async with database.transaction() as conn:
        discussion = await service.get_for_change(conn, caller, address, number, right=Right.write)
        return await _finish(conn, caller, discussion, merged, comment=comment)


async def _plan(conn: Reader, caller: Caller, address: RepoAddress, number: int) -> MergePlan:
    discussion = await service.get(conn, caller, address, number, right=Right.write)
    _check_open(discussion)
    head = await refs.find_sha(conn, discussion.repo, discussion.ref)
    if head is None:
        raise PullRequestRefDeleted
    base = await refs.get_sha(conn, discussion.repo, discussion.base)
    return MergePlan(discussion=discussion, sides=Sides(base=base, head=head))


def _check_open(discussion: DiscussionRecord) -> None:
    pull_requests.check_pull_request(discussion)
    if discussion.thread.status not in OPEN_STATUSES:
        raise StatusUnchanged(discussion.noun, str(discussion.thread.status))


def _write_merge(folder: Path, plan: MergePlan, *, author: str) -> MergeResult:
    message = f"{plan.discussion.thread.title} (#{plan.discussion.number})"
    request = MergeRequest(author=author, at=now(), message=message)
    oid = comparison.merge(folder, plan.sides, request)
    if oid is None:
        return MergeResult(sides=plan.sides, commit=None, card=None)
    card = read_card(folder, oid, plan.discussion.repo.type)
    return MergeResult(
        sides=plan.sides, commit=PullRequestCommit(oid=oid, subject=message), card=card
    )


async def _finish(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    merged: MergeResult,
    *,
    comment: str | None,
) -> str:
    _check_open(discussion)
    await _lock_both_refs(conn, discussion, merged.sides)
    if comment is not None:
        await service.comment(conn, caller, discussion, comment)
    if merged.commit is not None:
        discussion = await _move_base(conn, caller, discussion, merged)
        await pull_requests.record_commit(
            conn, discussion.thread, merged.commit, actor_id=caller.user_id
        )
    oid = merged.commit.oid if merged.commit else merged.sides.base
    after = replace(
        discussion.thread,
        status=ThreadStatus.merged,
        merge_commit_id=oid,
        details={"head": merged.sides.head},
    )
    await service.record_status(conn, caller, discussion, after)
    return oid


async def _lock_both_refs(conn: Connection, discussion: DiscussionRecord, sides: Sides) -> None:
    """Lock both refs, unless one points to another commit than git merged."""
    for ref, sha in ((discussion.ref, sides.head), (discussion.base, sides.base)):
        if not await store.lock_ref(conn, discussion.repo.id, ref=ref, sha=sha):
            raise RefChanged(ref.removeprefix(HEADS))


async def _move_base(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, merged: MergeResult
) -> DiscussionRecord:
    new = merged.commit.oid if merged.commit else merged.sides.base
    update = UpdatedRef(ref=discussion.base, old_sha=merged.sides.base, new_sha=new)
    move = RefTransaction(updates=(update,), actor_id=caller.user_id, card=merged.card)
    return replace(discussion, repo=await refs.update_refs(conn, discussion.repo, move))
