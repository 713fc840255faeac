"""Rules that hold for every kind of thread; each kind decides who may read and write."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from hublet.community import emoji_store
from hublet.community.errors import CannotReply, CommentHidden, CommentNotFound
from hublet.community.threads import store
from hublet.community.threads.mentions import mentioned_names
from hublet.community.threads.records import Comment, Participation, Thread, ThreadChange
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import (
    CommentCreated,
    CommentSnapshot,
    CommentUpdated,
    RepoSnapshot,
    ThreadCreated,
    ThreadDeleted,
    ThreadSnapshot,
    ThreadUpdated,
)

# Tells whether a user may read the thread: a mention must not disclose it to others.
MayRead = Callable[[Reader, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """The repository that a thread belongs to, if any, and who may read the thread."""

    may_read: MayRead
    repo: RepoSnapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDifference:
    """The names of what changed in a thread: title, status, pinned, content."""

    changed: tuple[str, ...]
    # The entry of the change in the thread's history.
    event_id: str | None = None
    # The former body: only users whom it did not mention are notified of a mention.
    body_before: str | None = None


def snapshot(thread: Thread, context: ThreadContext) -> ThreadSnapshot:
    """Return the thread as events carry it; a discussion with its repository."""
    return ThreadSnapshot(
        id=thread.id,
        kind=thread.kind,
        title=thread.title,
        author_id=thread.author_id,
        repo=context.repo,
        number=thread.number,
        is_pull_request=thread.is_pull_request,
        status=thread.status,
        pinned=thread.pinned,
        base=thread.base,
        merge_commit_id=thread.merge_commit_id,
        paper_id=thread.paper_id,
        slug=thread.slug,
    )


def comment_snapshot(comment: Comment) -> CommentSnapshot:
    return CommentSnapshot(
        id=comment.id,
        author_id=comment.author_id,
        hidden=comment.hidden,
        content=None if comment.hidden else comment.raw,
        parent_id=comment.parent_id,
    )


async def open_thread(
    conn: Connection,
    thread: Thread,
    context: ThreadContext,
    *,
    actor_id: str,
    message: str | None,
) -> Comment | None:
    """Publish that a thread was added, with its first message if it has one.

    In a thread without a message (a post, a blog, a paper) the body may mention users.
    """
    comment = None
    if message is not None:
        comment = await _add_comment(conn, thread, author_id=actor_id, raw=message, parent_id=None)
    text = message if message is not None else thread.body or ""
    mentioned = await _add_mentions(conn, thread, context, text, actor_id=actor_id)
    if thread.author_id is not None:
        await store.add_participations(conn, thread.id, {thread.author_id: Participation.opened})
    await publish(
        conn,
        ThreadCreated(
            thread=snapshot(thread, context),
            comment=comment_snapshot(comment) if comment else None,
            mentioned_ids=mentioned,
            actor_id=actor_id,
        ),
    )
    return comment


async def add_comment(
    conn: Connection,
    thread: Thread,
    context: ThreadContext,
    *,
    author_id: str,
    raw: str,
    parent_id: str | None = None,
) -> Comment:
    if parent_id is not None:
        await _check_parent(conn, thread, parent_id)
    comment = await _add_comment(conn, thread, author_id=author_id, raw=raw, parent_id=parent_id)
    await store.add_participations(conn, thread.id, {author_id: Participation.commented})
    mentioned = await _add_mentions(conn, thread, context, raw, actor_id=author_id)
    await publish(
        conn,
        CommentCreated(
            thread=snapshot(thread, context),
            comment=comment_snapshot(comment),
            mentioned_ids=mentioned,
            actor_id=author_id,
        ),
    )
    return comment


async def _check_parent(conn: Reader, thread: Thread, parent_id: str) -> None:
    parent = await store.find_comment(conn, parent_id, thread_id=thread.id)
    if parent is None or parent.hidden:
        raise CannotReply


async def _add_comment(
    conn: Connection, thread: Thread, *, author_id: str, raw: str, parent_id: str | None
) -> Comment:
    comment = Comment(
        id=new_object_id(),
        thread_id=thread.id,
        author_id=author_id,
        parent_id=parent_id,
        raw=raw,
        created_at=now(),
    )
    await store.add_comment(conn, comment)
    return comment


async def get_comment(conn: Reader, thread: Thread, comment_id: str) -> Comment:
    comment = await store.find_comment(conn, comment_id, thread_id=thread.id)
    if comment is None:
        raise CommentNotFound(comment_id)
    return comment


async def edit_comment(
    conn: Connection,
    thread: Thread,
    context: ThreadContext,
    comment: Comment,
    *,
    actor_id: str,
    raw: str,
) -> Comment:
    """Replace the text of a comment; only newly mentioned users are notified."""
    if comment.hidden:
        raise CommentHidden
    if raw == comment.raw:
        return comment
    edited = replace(comment, raw=raw, edited_at=now())
    await store.set_comment_text(conn, before=comment, after=edited)
    mentioned = await _add_mentions(
        conn, thread, context, raw, actor_id=actor_id, before=comment.raw
    )
    await _publish_comment_update(
        conn, snapshot(thread, context), edited, actor_id=actor_id, mentioned=mentioned
    )
    return edited


async def hide_comment(
    conn: Connection, thread: Thread, context: ThreadContext, comment: Comment, *, actor_id: str
) -> Comment:
    """Hide a comment for good, without its emoji; nothing carries its text any more."""
    if comment.hidden:
        return comment
    await store.set_comment_hidden(conn, comment.id, by=actor_id)
    await emoji_store.remove_all(conn, comment.id)
    hidden = replace(comment, hidden=True, hidden_by=actor_id)
    await _publish_comment_update(
        conn, snapshot(thread, context), hidden, actor_id=actor_id, mentioned=()
    )
    return hidden


async def _publish_comment_update(
    conn: Connection,
    thread: ThreadSnapshot,
    comment: Comment,
    *,
    actor_id: str,
    mentioned: tuple[str, ...],
) -> None:
    await publish(
        conn,
        CommentUpdated(
            thread=thread,
            comment=comment_snapshot(comment),
            mentioned_ids=mentioned,
            actor_id=actor_id,
        ),
    )


async def update(
    conn: Connection,
    thread: Thread,
    context: ThreadContext,
    difference: ThreadDifference,
    *,
    actor_id: str,
) -> None:
    """Write a changed thread and publish what changed in it."""
    await store.update(conn, thread)
    await store.add_participations(conn, thread.id, {actor_id: Participation.changed})
    mentioned: tuple[str, ...] = ()
    if (before := difference.body_before) is not None:
        mentioned = await _add_mentions(
            conn, thread, context, thread.body or "", actor_id=actor_id, before=before
        )
    await publish(
        conn,
        ThreadUpdated(
            thread=snapshot(thread, context),
            changed=difference.changed,
            event_id=difference.event_id,
            mentioned_ids=mentioned,
            actor_id=actor_id,
        ),
    )


async def record_change(
    conn: Connection,
    thread: Thread,
    type: str,  # noqa: A002 - the client's word
    *,
    actor_id: str,
    data: dict[str, Any],
    at: datetime | None = None,
) -> ThreadChange:
    """Add a change to the thread's history, as of now unless `at` is given."""
    change = ThreadChange(
        id=new_object_id(),
        thread_id=thread.id,
        type=type,
        author_id=actor_id,
        data=data,
        created_at=at or now(),
    )
    await store.add_change(conn, change)
    return change


async def delete(
    conn: Connection, thread: Thread, context: ThreadContext, *, actor_id: str
) -> None:
    await store.remove(conn, thread.id)
    await publish(conn, ThreadDeleted(thread=snapshot(thread, context), actor_id=actor_id))


async def _add_mentions(
    conn: Connection,
    thread: Thread,
    context: ThreadContext,
    text: str,
    *,
    actor_id: str,
    before: str = "",
) -> tuple[str, ...]:
    """Store and return the users whom a text mentions and the text before did not.

    The actor does not count, nor do users who may not read the thread.
    """
    known = set(mentioned_names(before))
    names = [name for name in mentioned_names(text) if name not in known]
    users = await store.find_users_by_name(conn, names) if names else {}
    ids = [users[name] for name in names if name in users and users[name] != actor_id]
    mentioned = tuple([user_id for user_id in ids if await context.may_read(conn, user_id)])
    await store.add_participations(
        conn, thread.id, dict.fromkeys(mentioned, Participation.mentioned)
    )
    return mentioned
