"""View of one discussion: its history, and a pull request's comparison with its base."""

import asyncio
from pathlib import Path

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji
from hublet.community.comment_schemas import author_ids
from hublet.community.discussions import comparison, pull_requests, service
from hublet.community.discussions.comparison import Sides
from hublet.community.discussions.records import (
    OPEN_STATUSES,
    Comparison,
    DiscussionHistory,
    DiscussionRecord,
    DiscussionView,
)
from hublet.community.threads import store as thread_store
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.errors import RevisionNotFound
from hublet.repos.records import RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heads:
    """The commits of a pull request and of its base; None where a ref was deleted."""

    base: str | None
    head: str | None


async def get(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    number: int,
    *,
    with_diff: bool,
) -> DiscussionView:
    async with database.read() as conn:
        discussion = await service.get(conn, caller, address, number)
        history = await _load_history(conn, discussion)
        if not discussion.thread.is_pull_request:
            return DiscussionView(discussion=discussion, history=history)
        may_read_files = await repos.may(conn, caller, discussion.repo, Right.read)
        heads = _Heads(
            base=await refs.find_sha(conn, discussion.repo, discussion.base),
            head=await pull_requests.head_of(conn, discussion),
        )
    folder = repos.git_folder(database, discussion.repo.id)
    compared = await asyncio.to_thread(
        _compare, folder, discussion, heads, with_diff=with_diff and may_read_files
    )
    return DiscussionView(
        discussion=discussion,
        history=history,
        comparison=compared,
        may_read_files=may_read_files,
    )


async def _load_history(conn: Reader, discussion: DiscussionRecord) -> DiscussionHistory:
    thread = discussion.thread
    comments = await thread_store.list_comments(conn, thread.id)
    changes = await thread_store.list_changes(conn, thread.id)
    authors = author_ids(comments) | {change.author_id for change in changes} | {thread.author_id}
    return DiscussionHistory(
        comments=comments,
        versions=await thread_store.list_revisions(conn, thread.id),
        emoji=await emoji.counts_of(conn, comments),
        changes=changes,
        accounts=await find_accounts(conn, authors),
    )


def _compare(
    folder: Path, discussion: DiscussionRecord, heads: _Heads, *, with_diff: bool
) -> Comparison:
    is_open = discussion.thread.status in OPEN_STATUSES
    try:
        sides = _sides(folder, discussion, heads)
        return Comparison(
            conflicts=comparison.conflicts(folder, sides) if sides and is_open else (),
            diff=comparison.diff(folder, sides) if sides and with_diff else None,
        )
    except RevisionNotFound:
        # Git has pruned commits that no ref leads to any more.
        return Comparison()


def _sides(folder: Path, discussion: DiscussionRecord, heads: _Heads) -> Sides | None:
    if heads.head is None:
        return None
    if (merge_commit := discussion.thread.merge_commit_id) is not None:
        return comparison.sides_before(folder, merge_commit=merge_commit, head=heads.head)
    return Sides(base=heads.base, head=heads.head) if heads.base else None
