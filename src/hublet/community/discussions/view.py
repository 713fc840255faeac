"""View of one discussion: its history, and a pull request's comparison with its base."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji, emoji_store
from hublet.community.comment_schemas import author_ids
from hublet.community.discussions import comparison, service, store
from hublet.community.discussions.comparison import Sides
from hublet.community.discussions.conflicts import ConflictPlaces, list_places
from hublet.community.discussions.records import (
    OPEN_STATUSES,
    Comparison,
    DiscussionHistory,
    DiscussionRecord,
    DiscussionView,
    ThreadReference,
)
from hublet.community.threads.records import Emoji, Participation, Thread, ThreadEntries
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.browse import lists
from hublet.repos.errors import RevisionNotFound
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

# States of pull requests that are kept; each is small.
_MOST_STATES = 512
# Comments that name a thread and are looked at.
_MOST_REFERENCES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestHeads:
    """The commits of a pull request and of its base; None where a ref was deleted."""

    base: str | None
    head: str | None
    # Whether the ref of the pull request is still there.
    has_ref: bool = True


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
    folder = await repos.open_folder(database, discussion.repo.id)
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
    found = await refs.find_shas(conn, discussion.repo, [discussion.base, discussion.ref])
    ref = found.get(discussion.ref)
    return PullRequestHeads(
        base=found.get(discussion.base),
        # Also after the ref was deleted.
        head=discussion.last_head or ref,
        has_ref=ref is not None,
    )


async def load_conversation(
    conn: Reader, caller: Caller | None, thread: Thread, *, is_muted: bool
) -> tuple[DiscussionHistory, ThreadAudience]:
    """Return the history of a thread of any kind and who takes part, with three statements."""
    entries = await store.list_entries(conn, thread.id)
    counts, given = await emoji_store.count_of_thread(
        conn, thread.id, names=emoji.MAX_NAMES, user_id="" if caller is None else caller.user_id
    )
    accounts, people = await store.find_people(conn, thread.id, _authors_of(thread, entries))
    active = [each.user_id for each in people if each.parts != {Participation.mentioned}]
    # Mentions in the first text come before its author.
    active.sort(key=lambda user_id: user_id != thread.author_id)
    history = DiscussionHistory(
        comments=entries.comments,
        versions=entries.revisions,
        emoji=counts,
        changes=entries.changes,
        accounts=accounts,
    )
    names = [accounts[user_id].name for user_id in active]
    return history, ThreadAudience(participants=names, is_muted=is_muted, given=given)


async def load_references(
    conn: Reader, caller: Caller | None, discussion: DiscussionRecord
) -> list[tuple[ThreadReference, Repo]]:
    """Return the first comment of each thread that names this one and that the caller may see."""
    found = await store.list_references(conn, discussion.thread.id, limit=_MOST_REFERENCES)
    first = {each.thread.id: each for each in reversed(found)}
    own = {discussion.repo.id: discussion.repo}
    others = {each.thread.repo_id or "" for each in found} - own.keys()
    visible = own | await lists.list_visible(conn, caller, others)
    return [
        (each, visible[each.thread.repo_id])
        for each in first.values()
        if each.thread.repo_id in visible
    ]


def _authors_of(thread: Thread, entries: ThreadEntries) -> set[str | None]:
    changed = {change.author_id for change in entries.changes}
    return {*author_ids(entries.comments), *changed, thread.author_id}


async def load_history(conn: Reader, thread: Thread) -> DiscussionHistory:
    entries = await store.list_entries(conn, thread.id)
    return DiscussionHistory(
        comments=entries.comments,
        versions=entries.revisions,
        emoji=await emoji.counts_of(conn, entries.comments),
        changes=entries.changes,
        accounts=await find_accounts(conn, _authors_of(thread, entries)),
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
