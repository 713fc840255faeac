"""Everything that is shown of one discussion."""

import asyncio
from pathlib import Path

from hublet.community.authors import store as authors
from hublet.community.discussions import service
from hublet.community.discussions.pull_requests import comparing
from hublet.community.discussions.pull_requests import service as pull_requests
from hublet.community.discussions.pull_requests.comparing import Sides
from hublet.community.discussions.records import (
    OPEN,
    Comparison,
    Details,
    Discussion,
    History,
)
from hublet.community.threads import store as threads
from hublet.community.threads.schemas import authors_of
from hublet.core.database import Database, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.repos import service as repos
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import folders
from hublet.repos.records import RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heads:
    """Where a pull request and its base are; the base may be gone, and the commits as well."""

    base: str | None
    head: str | None


async def get(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    number: int,
    *,
    with_diff: bool,
) -> Details:
    async with database.read() as conn:
        discussion = await service.get(conn, caller, address, number)
        history = await _history(conn, discussion)
        if not discussion.thread.is_pull_request:
            return Details(discussion=discussion, history=history)
        may_read = await repos.may(conn, caller, discussion.repo, Right.read)
        heads = _Heads(
            base=await refs.find_sha(conn, discussion.repo, discussion.base),
            head=await pull_requests.head_of(conn, discussion),
        )
    folder = folders.folder_of(database.hub.settings.database.data_dir, discussion.repo.id)
    comparison = await asyncio.to_thread(
        _compare, folder, discussion, heads, with_diff=with_diff and may_read
    )
    return Details(discussion=discussion, history=history, comparison=comparison, may_read=may_read)


async def _history(conn: Reader, discussion: Discussion) -> History:
    thread = discussion.thread
    comments = await threads.list_comments(conn, thread.id)
    changes = await threads.list_changes(conn, thread.id)
    shown = authors_of(comments) | {change.author_id for change in changes} | {thread.author_id}
    return History(
        comments=comments,
        versions=await threads.list_versions(conn, thread.id),
        changes=changes,
        accounts=await authors.find_accounts(conn, shown),
    )


def _compare(folder: Path, discussion: Discussion, heads: _Heads, *, with_diff: bool) -> Comparison:
    is_open = discussion.thread.status in OPEN
    try:
        sides = _sides(folder, discussion, heads)
        return Comparison(
            conflicts=comparing.conflicts(folder, sides) if sides and is_open else (),
            diff=comparing.diff(folder, sides) if sides and with_diff else None,
        )
    except RevisionNotFound:
        # Git sweeps away what no ref leads to any more.
        return Comparison()


def _sides(folder: Path, discussion: Discussion, heads: _Heads) -> Sides | None:
    if heads.head is None:
        return None
    if (merge_commit := discussion.thread.merge_commit_id) is not None:
        return comparing.sides_before(folder, merge_commit=merge_commit, head=heads.head)
    return Sides(base=heads.base, head=heads.head) if heads.base else None
