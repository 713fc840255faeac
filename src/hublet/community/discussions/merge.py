"""Merge of a pull request into its base: git objects on the disk first, then the refs."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hublet.community.discussions import comparison, conflicts, pull_requests, service, store
from hublet.community.discussions.comparison import MergeRequest, Sides
from hublet.community.discussions.conflicts import ConflictingFile, Solution, WrittenSolution
from hublet.community.discussions.records import OPEN_STATUSES, DiscussionRecord, PullRequestCommit
from hublet.community.errors import PullRequestRefDeleted, SidesMoved, StatusUnchanged
from hublet.community.threads.records import ThreadStatus
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos.cards import read_card
from hublet.repos.commits.targets import CommitAddress, get_target
from hublet.repos.errors import RefChanged
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.records import HEADS, Card, NewPacks, RefTransaction, RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.repos.service import open_folder
from hublet.tokens.records import Caller

# How often a merge is retried because one of the refs moved meanwhile.
RETRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _MergeOrder:
    address: RepoAddress
    number: int
    comment: str | None
    head: str | None


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
    packs: NewPacks | None = None


async def merge_into_base(
    database: Database,
    caller: Caller,
    address: RepoAddress,
    number: int,
    *,
    comment: str | None,
    head: str | None = None,
) -> str:
    """Merge a pull request, draft or not, into its base; return the merge commit.

    With a `head`, only that commit is merged: not what came after somebody looked at it.
    """
    request = _MergeOrder(address=address, number=number, comment=comment, head=head)
    for _ in range(RETRIES):
        with suppress(RefChanged):
            return await _try_merge(database, caller, request)
    return await _try_merge(database, caller, request)


async def _try_merge(database: Database, caller: Caller, request: _MergeOrder) -> str:
    address, number = request.address, request.number
    async with database.read() as conn:
        plan = await _plan(conn, caller, address, number)
    if request.head not in {None, plan.sides.head}:
        raise SidesMoved
    async with open_workspace(database, plan.discussion.repo.id) as work:
        merged = await asyncio.to_thread(_write_merge, work.folder, plan, author=caller.user_name)
        merged = replace(merged, packs=await work.upload())
        async with database.transaction() as conn:
            discussion = await service.get_for_change(
                conn, caller, address, number, right=Right.write
            )
            return await _finish(conn, caller, discussion, merged, comment=request.comment)


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
    move = RefTransaction(
        updates=(update,), actor_id=caller.user_id, card=merged.card, packs=merged.packs
    )
    return replace(discussion, repo=await refs.update_refs(conn, discussion.repo, move))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictView:
    """The conflicts of a pull request, for somebody who may solve them."""

    discussion: DiscussionRecord
    sides: Sides
    files: Sequence[ConflictingFile]


async def get_conflicts(
    database: Database, caller: Caller, address: RepoAddress, number: int
) -> ConflictView:
    async with database.read() as conn:
        discussion = await _get_to_push(conn, caller, address, number)
        head = await refs.get_sha(conn, discussion.repo, discussion.ref)
        base = await refs.get_sha(conn, discussion.repo, discussion.base)
    sides = Sides(base=base, head=head)
    folder = await open_folder(database, discussion.repo.id)
    files = await asyncio.to_thread(conflicts.read_files, folder, sides)
    return ConflictView(discussion=discussion, sides=sides, files=files)


async def solve_conflicts(
    database: Database,
    caller: Caller,
    address: RepoAddress,
    number: int,
    sides: Sides,
    solution: Solution,
) -> str:
    """Merge the base into a pull request, with these files where both changed; return the commit.

    It is what a person would push to the pull request, so who may push there may do it.
    """
    async with database.read() as conn:
        discussion = await _get_to_push(conn, caller, address, number)
        await _check_sides(conn, discussion, sides)
    base = discussion.base.removeprefix(HEADS)
    message = f"Merge {base} into {discussion.ref}"
    request = MergeRequest(author=caller.user_name, at=now(), message=message)
    async with open_workspace(database, discussion.repo.id) as work:
        written = await asyncio.to_thread(
            conflicts.write_solution, work.folder, sides, solution, request
        )
        written = replace(written, packs=await work.upload())
        async with database.transaction() as conn:
            await service.lock(conn, discussion.repo.id, number)
            discussion = await _get_to_push(conn, caller, address, number)
            await _move_head(conn, caller, discussion, sides, written)
    return written.oid


async def _get_to_push(
    conn: Reader, caller: Caller, address: RepoAddress, number: int
) -> DiscussionRecord:
    discussion = await service.get(conn, caller, address, number)
    _check_open(discussion)
    # The one rule for `git push` and for the commit API.
    await get_target(conn, caller, CommitAddress(repo=address, revision=discussion.ref))
    return discussion


async def _check_sides(conn: Reader, discussion: DiscussionRecord, sides: Sides) -> None:
    head = await refs.find_sha(conn, discussion.repo, discussion.ref)
    base = await refs.find_sha(conn, discussion.repo, discussion.base)
    if (base, head) != (sides.base, sides.head):
        raise SidesMoved


async def _move_head(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    sides: Sides,
    written: WrittenSolution,
) -> None:
    try:
        await _lock_both_refs(conn, discussion, sides)
    except RefChanged:
        raise SidesMoved from None
    update = UpdatedRef(ref=discussion.ref, old_sha=sides.head, new_sha=written.oid)
    move = RefTransaction(
        updates=(update,),
        actor_id=caller.user_id,
        added_bytes=written.added_bytes,
        packs=written.packs,
    )
    await refs.update_refs(conn, discussion.repo, move)
