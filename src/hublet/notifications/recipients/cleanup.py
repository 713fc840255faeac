"""Cleanup of inboxes: removes what was deleted, and what a user may not see any more."""

from dataclasses import replace

import msgspec

from hublet.core import queue
from hublet.core.database import Connection
from hublet.notifications.inbox import service as inbox
from hublet.notifications.recipients import store
from hublet.notifications.recipients.records import MemberReview, RepoReview, ThreadRemoval
from hublet.notifications.recipients.service import BATCH, lock_fan_out
from hublet.repos import service as repos

REMOVE_THREAD = "notifications.forget-thread"
REVIEW_REPO = "notifications.review-repo"
REVIEW_MEMBER = "notifications.review-member"

# So many are checked in one task; each is removed on its own.
REPOS = 50


async def remove_thread(conn: Connection, removal: ThreadRemoval) -> None:
    """Remove a thread from a page of inboxes, and leave the rest to the next task."""
    await lock_fan_out(conn)
    users = await inbox.list_users_with(
        conn, thread_id=removal.thread_id, after=removal.after, limit=BATCH
    )
    await inbox.remove_thread(conn, thread_id=removal.thread_id, user_ids=users)
    if len(users) == BATCH:
        await _queue_rest(conn, REMOVE_THREAD, replace(removal, after=users[-1]))


async def review_repo(conn: Connection, review: RepoReview) -> None:
    """Remove a repository from the inboxes of those, in a page, who may not see it now."""
    await lock_fan_out(conn)
    repo = await store.find_repo(conn, review.repo_id)
    if repo is not None and not repo.private:
        return
    users = await inbox.list_users_with(
        conn, place_id=review.repo_id, after=review.after, limit=BATCH
    )
    seen_by = frozenset() if repo is None else await repos.who_may_see(conn, repo, users)
    excluded = [user for user in users if user not in seen_by]
    await inbox.remove_place(conn, review.repo_id, user_ids=excluded)
    if len(users) == BATCH:
        await _queue_rest(conn, REVIEW_REPO, replace(review, after=users[-1]))


async def review_member(conn: Connection, review: MemberReview) -> None:
    """Remove from a user's inbox the repositories of an organization that are now hidden."""
    await lock_fan_out(conn)
    found = await store.list_private_repos(
        conn, review.organization_id, user_id=review.user_id, after=review.after, limit=REPOS
    )
    for repo in found:
        if not await repos.who_may_see(conn, repo, [review.user_id]):
            await inbox.remove_place(conn, repo.id, user_ids=[review.user_id])
    if len(found) == REPOS:
        await _queue_rest(conn, REVIEW_MEMBER, replace(review, after=found[-1].id))


async def _queue_rest(
    conn: Connection, kind: str, rest: ThreadRemoval | RepoReview | MemberReview
) -> None:
    await queue.add(conn, queue.NewTask(kind=kind, body=msgspec.json.encode(rest).decode()))
