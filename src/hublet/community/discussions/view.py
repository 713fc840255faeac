"""View of one discussion: its history, and a pull request's comparison with its base."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji, emoji_store
from hublet.community.comment_schemas import author_ids
from hublet.community.discussions import comparison, pull_requests, service
from hublet.community.discussions.comparison import Sides
from hublet.community.discussions.conflicts import ConflictPlaces, list_places
from hublet.community.discussions.records import (
    OPEN_STATUSES,
    Comparison,
    DiscussionHistory,
    DiscussionRecord,
    DiscussionView,
)
from hublet.community.threads import store as thread_store
from hublet.community.threads.records import Emoji, Participation, Thread
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.errors import RevisionNotFound
from hublet.repos.records import RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

# States of pull requests that are kept; each is small.
_MOST_STATES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestHeads:
    """The commits of a pull request and of its base; None where a ref was deleted."""

    base: str | None
    head: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadAudience:
    """Who takes part in a thread, and what the caller has to do with it."""

    # Names, the author first, then as they came; who was only mentioned is left out.
    participants: Sequence[str]
    is_muted: bool = False
    # The emoji that the caller gave, with the comments.
    given: frozenset[tuple[str, Emoji]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestState:
    """What git says of a pull request: how much it changes, and where it conflicts."""

    sides: Sides
    commit_count: int
    file_count: int
    conflicts: Sequence[ConflictPlaces] = ()


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
        history = await load_history(conn, discussion.thread)
        if not discussion.thread.is_pull_request:
            return DiscussionView(discussion=discussion, history=history)
        may_read_files = await repos.may(conn, caller, discussion.repo, Right.read)
        heads = await find_heads(conn, discussion)
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


async def find_heads(conn: Reader, discussion: DiscussionRecord) -> PullRequestHeads:
    return PullRequestHeads(
        base=await refs.find_sha(conn, discussion.repo, discussion.base),
        head=await pull_requests.head_of(conn, discussion),
    )


async def load_audience(conn: Reader, caller: Caller | None, thread: Thread) -> ThreadAudience:
    active = [
        each.user_id
        for each in await thread_store.list_participants(conn, thread.id)
        if each.parts != {Participation.mentioned}
    ]
    accounts = await find_accounts(conn, active)
    # Mentions in the first text come before its author.
    active.sort(key=lambda user_id: user_id != thread.author_id)
    names = [accounts[user_id].name for user_id in active if user_id in accounts]
    if caller is None:
        return ThreadAudience(participants=names)
    return ThreadAudience(
        participants=names,
        is_muted=caller.user_id in await thread_store.list_muted(conn, thread.id),
        given=await emoji_store.list_given(conn, thread.id, user_id=caller.user_id),
    )


async def load_history(conn: Reader, thread: Thread) -> DiscussionHistory:
    """Return the comments and changes of a thread of any kind."""
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


def describe_state(
    folder: Path, discussion: DiscussionRecord, heads: PullRequestHeads
) -> PullRequestState | None:
    """Return what git says; None when commits are gone. Blocks on the disk."""
    try:
        sides = find_sides(folder, discussion, heads)
        state = _describe_sides(folder, sides) if sides else None
    except RevisionNotFound:
        return None
    if state is None or discussion.thread.status in OPEN_STATUSES:
        return state
    return replace(state, conflicts=())


@lru_cache(maxsize=_MOST_STATES)
def _describe_sides(folder: Path, sides: Sides) -> PullRequestState:
    # Commits never change, so neither does this.
    return PullRequestState(
        sides=sides,
        commit_count=len(comparison.list_commits(folder, sides)),
        file_count=comparison.count_files(folder, sides),
        conflicts=list_places(folder, sides),
    )


def _compare(
    folder: Path, discussion: DiscussionRecord, heads: PullRequestHeads, *, with_diff: bool
) -> Comparison:
    is_open = discussion.thread.status in OPEN_STATUSES
    try:
        sides = find_sides(folder, discussion, heads)
        return Comparison(
            conflicts=comparison.conflicts(folder, sides) if sides and is_open else (),
            diff=comparison.diff(folder, sides) if sides and with_diff else None,
        )
    except RevisionNotFound:
        # Git has pruned commits that no ref leads to any more.
        return Comparison()


def find_sides(folder: Path, discussion: DiscussionRecord, heads: PullRequestHeads) -> Sides | None:
    """Return the commits to compare; None when a ref was deleted. Blocks on the disk."""
    if heads.head is None:
        return None
    if (merge_commit := discussion.thread.merge_commit_id) is not None:
        return comparison.sides_before(folder, merge_commit=merge_commit, head=heads.head)
    return Sides(base=heads.base, head=heads.head) if heads.base else None
