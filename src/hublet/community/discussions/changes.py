"""Rules of changing the title, the status and the pin of a discussion."""

from dataclasses import replace

from hublet.community.discussions import service
from hublet.community.discussions.records import DiscussionRecord
from hublet.community.errors import PullRequestRefDeleted, StatusUnchanged, TitleUnchanged
from hublet.community.threads import service as threads
from hublet.community.threads.records import Thread, ThreadChange, ThreadStatus
from hublet.community.threads.service import ThreadDifference
from hublet.core.database import Connection, Reader
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller


async def rename(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, title: str
) -> ThreadChange:
    await service.check_author_or_writer(conn, caller, discussion, f"rename this {discussion.noun}")
    thread = discussion.thread
    if title == thread.title:
        raise TitleUnchanged(discussion.noun)
    change = await threads.record_change(
        conn,
        thread,
        "title-change",
        actor_id=caller.user_id,
        data={"from": thread.title, "to": title},
    )
    difference = ThreadDifference(changed=("title",), event_id=change.id)
    await _update(conn, caller, discussion, replace(thread, title=title), difference)
    return change


async def set_status(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    status: ThreadStatus,
    *,
    comment: str | None,
) -> ThreadChange:
    """Close or open a discussion; opening a draft makes it ready, opening a closed one reopens it."""
    verb = "close" if status is ThreadStatus.closed else "open"
    await service.check_author_or_writer(conn, caller, discussion, f"{verb} this {discussion.noun}")
    if discussion.thread.status in {status, ThreadStatus.merged}:
        raise StatusUnchanged(discussion.noun, str(discussion.thread.status))
    if status is ThreadStatus.open:
        await _check_ref(conn, discussion)
    if comment is not None:
        await service.comment(conn, caller, discussion, comment)
    return await record_status(conn, caller, discussion, replace(discussion.thread, status=status))


async def _check_ref(conn: Reader, discussion: DiscussionRecord) -> None:
    if discussion.thread.is_pull_request and (
        await refs.find_sha(conn, discussion.repo, discussion.ref) is None
    ):
        raise PullRequestRefDeleted


async def record_status(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    after: Thread,
) -> ThreadChange:
    """Write a thread with its new status, and add the change to its history."""
    change = await threads.record_change(
        conn,
        after,
        "status-change",
        actor_id=caller.user_id,
        data={"status": after.status},
    )
    difference = ThreadDifference(changed=("status",), event_id=change.id)
    await _update(conn, caller, discussion, after, difference)
    return change


async def set_pinned(
    conn: Connection, caller: Caller, discussion: DiscussionRecord, *, pinned: bool
) -> None:
    """Pin a discussion to the top of the list, or unpin it; doing it again changes nothing."""
    if discussion.thread.pinned is pinned:
        return
    after = replace(discussion.thread, pinned=pinned)
    change = await threads.record_change(
        conn, after, "pinning-change", actor_id=caller.user_id, data={"pinned": pinned}
    )
    difference = ThreadDifference(changed=("pinned",), event_id=change.id)
    await _update(conn, caller, discussion, after, difference)


async def _update(
    conn: Connection,
    caller: Caller,
    discussion: DiscussionRecord,
    after: Thread,
    difference: ThreadDifference,
) -> None:
    context = service.context_of(discussion.repo)
    await threads.update(conn, after, context, difference, actor_id=caller.user_id)
