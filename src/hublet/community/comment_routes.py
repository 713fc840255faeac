"""HTTP routes for the comments of public threads, the same for papers, posts and blogs."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Depends

from hublet.community import comments
from hublet.community.comment_schemas import (
    CommentEvent,
    EditComment,
    Muted,
    NewComment,
    UpdatedComment,
    WriteComment,
)
from hublet.community.emoji import ThreadInContext
from hublet.community.emoji_routes import ReactionThreads, add_emoji_routes
from hublet.community.threads import store
from hublet.community.threads.records import Thread
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.tokens.auth import DiscussionWriter
from hublet.tokens.records import Caller

_HIDDEN: dict[int | str, dict[str, Any]] = {409: {"description": "The comment is hidden."}}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentedKind:
    """A kind of thread, as far as the routes of its comments differ from those of others."""

    # As in the names of the operations, and as in their descriptions.
    name: str
    phrase: str
    path: str
    tag: str
    # Dependencies that find the thread of the path: for routes that read, and for routes that
    # write, in the transaction of the request.
    thread_to_read: Callable[..., Awaitable[Thread]]
    thread_to_change: Callable[..., Awaitable[Thread]]
    # Tells whether the caller may hide every comment of the thread.
    owns: Callable[[Reader, Caller, Thread], Awaitable[bool]]
    # Which comments of others a caller may hide, as the description says it.
    hideable: str


def create_comments_router(kind: CommentedKind) -> Router:
    router = Router(prefix=kind.path, tags=[kind.tag])
    _add_list(router, kind)
    _add_writing(router, kind)
    _add_hide(router, kind)
    _add_muting(router, kind)
    add_emoji_routes(router, _reaction_threads(kind))
    return router


def _add_list(router: Router, kind: CommentedKind) -> None:
    async def list_comments(
        *, conn: ReadConn, thread: Thread = Depends(kind.thread_to_read), page: PageQuery
    ) -> list[CommentEvent]:
        oldest_first = await store.list_comments(
            conn, thread.id, after=page.after, limit=page.reach
        )
        return await comments.render(
            conn, page.cut(oldest_first, position=lambda comment: comment.id)
        )

    _describe(
        list_comments,
        f"list_{kind.name}_comments",
        f"List the comments under {kind.phrase}, oldest first, page by page.",
    )
    router.get("/comments", responses=PAGED_RESPONSES)(list_comments)


def _add_writing(router: Router, kind: CommentedKind) -> None:
    async def write(
        *,
        conn: Conn,
        caller: DiscussionWriter,
        thread: Thread = Depends(kind.thread_to_change),
        body: WriteComment,
    ) -> NewComment:
        comment = await comments.comment(conn, caller, thread, body.comment)
        return await comments.render_new(conn, comment)

    async def reply(
        *,
        conn: Conn,
        caller: DiscussionWriter,
        thread: Thread = Depends(kind.thread_to_change),
        comment: str,
        body: WriteComment,
    ) -> NewComment:
        written = await comments.reply(conn, caller, thread, comment, body.comment)
        return await comments.render_new(conn, written)

    async def edit(
        *,
        conn: Conn,
        caller: DiscussionWriter,
        thread: Thread = Depends(kind.thread_to_change),
        comment: str,
        body: EditComment,
    ) -> UpdatedComment:
        edited = await comments.edit(conn, caller, thread, comment, body.content)
        return await comments.render_updated(conn, edited)

    _describe(write, f"comment_on_{kind.name}", f"Comment on {kind.phrase}.")
    _describe(reply, f"reply_to_{kind.name}_comment", f"Answer a comment under {kind.phrase}.")
    _describe(
        edit,
        f"edit_{kind.name}_comment",
        f"Replace the text of one's own comment under {kind.phrase}.",
    )
    router.post("/comment")(write)
    router.post("/comment/{comment}/reply", responses=_HIDDEN)(reply)
    router.post("/comment/{comment}/edit", responses=_HIDDEN)(edit)


def _add_hide(router: Router, kind: CommentedKind) -> None:
    async def hide(
        *,
        conn: Conn,
        caller: DiscussionWriter,
        thread: Thread = Depends(kind.thread_to_change),
        comment: str,
    ) -> UpdatedComment:
        owns = await kind.owns(conn, caller, thread)
        hidden = await comments.hide(conn, caller, thread, comment, owns_thread=owns)
        return await comments.render_updated(conn, hidden)

    _describe(
        hide,
        f"hide_{kind.name}_comment",
        f"Hide a comment for good: one's own, or {kind.hideable}.",
    )
    router.post("/comment/{comment}/hide")(hide)


def _add_muting(router: Router, kind: CommentedKind) -> None:
    async def mute(
        *, conn: Conn, caller: DiscussionWriter, thread: Thread = Depends(kind.thread_to_change)
    ) -> Muted:
        await comments.mute(conn, caller, thread, muted=True)
        return Muted(muted=True)

    async def unmute(
        *, conn: Conn, caller: DiscussionWriter, thread: Thread = Depends(kind.thread_to_change)
    ) -> Muted:
        await comments.mute(conn, caller, thread, muted=False)
        return Muted(muted=False)

    again = "doing it again changes nothing."
    _describe(mute, f"mute_{kind.name}", f"Hear nothing more of {kind.phrase}; {again}")
    _describe(unmute, f"unmute_{kind.name}", f"Hear of {kind.phrase} again; {again}")
    router.post("/mute")(mute)
    router.delete("/mute")(unmute)


def _reaction_threads(kind: CommentedKind) -> ReactionThreads:
    async def lock_thread(
        *,
        conn: Conn,
        caller: DiscussionWriter,
        thread: Thread = Depends(kind.thread_to_change),
    ) -> ThreadInContext:
        locked = await comments.lock_thread_as_writer(conn, caller, thread)
        return ThreadInContext(thread=locked, context=comments.PUBLIC_CONTEXT)

    return ReactionThreads(
        name=kind.name,
        phrase=f"under {kind.phrase}",
        to_read=kind.thread_to_read,
        to_add=lock_thread,
        to_remove=lock_thread,
    )


def _describe(endpoint: Callable[..., Any], name: str, description: str) -> None:
    """Set what the description shows of an operation: its id and its text."""
    endpoint.__name__, endpoint.__doc__ = name, description
