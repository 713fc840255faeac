"""Rules of pull requests: opening, their refs, and the commits in their history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hublet.community.comment_schemas import MAX_COMMENT
from hublet.community.discussions import service as discussions
from hublet.community.discussions import store
from hublet.community.discussions.records import (
    CLOSED_STATUSES,
    MAX_TITLE,
    DiscussionRecord,
    NewDiscussion,
    PullRequestCommit,
    is_open_pull_request_of,
)
from hublet.community.errors import (
    NotAPullRequest,
    PullRequestNotClosed,
    PullRequestRefDeleted,
    PullRequestsNeedGit,
)
from hublet.community.threads import service as threads
from hublet.community.threads import store as thread_store
from hublet.community.threads.records import Thread, ThreadChange, ThreadStatus
from hublet.community.threads.service import ThreadContext, ThreadDifference
from hublet.core.database import Connection, Reader
from hublet.core.schema import CONTROL_CHARACTERS
from hublet.events import UpdatedRef
from hublet.repos import service as repos
from hublet.repos.commits.pull_requests import NewPullRequest, PullRequest, register
from hublet.repos.records import MAIN, RefTransaction, Repo, RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller


def check_pull_request(discussion: DiscussionRecord) -> None:
    if not discussion.thread.is_pull_request:
        raise NotAPullRequest(discussion.number)


async def open_draft(
    conn: Connection, caller: Caller, address: RepoAddress, new: NewDiscussion
) -> DiscussionRecord:
    """Open a pull request as a draft, with a ref that points to the commit of main."""
    # Interface 5.3: the author must be able to read the files that the request changes.
    repo = await repos.get(conn, caller, address, Right.read)
    await repos.check(conn, caller, repo, Right.discuss)
    if not repo.type.has_git:
        raise PullRequestsNeedGit(repo.type)
    head = await refs.get_sha(conn, repo, MAIN)
    draft = replace(new, base=MAIN, status=ThreadStatus.draft)
    discussion = await discussions.add(conn, caller, repo, draft)
    await _move_ref(conn, caller, discussion, old=None, new=head)
    return discussion


async def open_with_commit(
    conn: Connection, caller: Caller, repo: Repo, new: NewPullRequest
) -> PullRequest:
    """Open a pull request for a commit; the caller of this function creates the ref."""
    title = " ".join(CONTROL_CHARACTERS.sub(" ", new.title).split()) or "Pull request"
    discussion = await discussions.add(
        conn,
        caller,
        repo,
        NewDiscussion(
            title=title[:MAX_TITLE], description=new.description[:MAX_COMMENT], base=new.base
        ),
    )
    commit = PullRequestCommit(oid=new.head_sha, subject=title)
    await record_commit(conn, discussion.thread, commit, actor_id=caller.user_id)
    url = discussion.url(conn.hub.settings.base_url)
    return PullRequest(number=discussion.number, url=url)


async def is_author_of_open(conn: Reader, caller: Caller, repo: Repo, number: int) -> bool:
    """Tell whether a pull request is open and the caller is its author."""
    thread = await store.find(conn, repo.id, number)
    return thread is not None and is_open_pull_request_of(thread, caller.user_id)


register(opener=open_with_commit, check=is_author_of_open)


async def delete_ref(conn: Connection, caller: Caller, discussion: DiscussionRecord) -> None:
    """Delete the ref of a closed or merged pull request; its last commit is stored."""
    check_pull_request(discussion)
    if discussion.thread.status not in CLOSED_STATUSES:
        raise PullRequestNotClosed
    head = await refs.find_sha(conn, discussion.repo, discussion.ref)
    if head is None:
        raise PullRequestRefDeleted
    last_head = discussion.last_head or head
    await thread_store.update(conn, replace(discussion.thread, details={"head": last_head}))
    await _move_ref(conn, caller, discussion, old=head, new=None)


async def delete(conn: Connection, caller: Caller, discussion: DiscussionRecord) -> None:
    """Delete a discussion with its comments; a pull request's ref goes with it."""
    head = await refs.find_sha(conn, discussion.repo, discussion.ref)
    if head is not None:
        await _move_ref(conn, caller, discussion, old=head, new=None)
    context = discussions.context_of(discussion.repo)
    await threads.delete(conn, discussion.thread, context, actor_id=caller.user_id)


async def _move_ref(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    *,
    old: str | None,
    new: str | None,
) -> None:
    update = UpdatedRef(ref=discussion.ref, old_sha=old, new_sha=new)
    await refs.update_refs(
        conn, discussion.repo, RefTransaction(updates=(update,), actor_id=caller.user_id)
    )


async def add_commits(
    conn: Connection,
    thread: Thread,
    context: ThreadContext,
    commits: Sequence[PullRequestCommit],
    *,
    actor_id: str,
    at: datetime,
) -> None:
    """Add commits to the history of a pull request; idempotent."""
    known = await store.list_commits(conn, thread.id)
    new = [commit for commit in commits if commit.oid not in known]
    added = [await record_commit(conn, thread, each, actor_id=actor_id, at=at) for each in new]
    if added:
        difference = ThreadDifference(changed=("content",), event_id=added[0].id)
        await threads.update(conn, thread, context, difference, actor_id=actor_id)


async def record_commit(
    conn: Connection,
    thread: Thread,
    commit: PullRequestCommit,
    *,
    actor_id: str,
    at: datetime | None = None,
) -> ThreadChange:
    data = {"oid": commit.oid, "subject": commit.subject}
    return await threads.record_change(conn, thread, "commit", actor_id=actor_id, data=data, at=at)
