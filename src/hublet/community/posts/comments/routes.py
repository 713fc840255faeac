"""HTTP for the comments under a post."""

from hublet.community.commenting import answers
from hublet.community.commenting import service as commenting
from hublet.community.commenting.schemas import Muted
from hublet.community.posts import service as posts
from hublet.community.posts.auth import POST, AskedPost
from hublet.community.threads import store
from hublet.community.threads.schemas import (
    CommentEvent,
    EditComment,
    NewComment,
    UpdatedComment,
    WriteComment,
)
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.tokens.auth import DiscussionWriter

router = Router(prefix=POST, tags=["discussions"])


@router.get("/comments", responses=LINKED)
async def list_post_comments(
    conn: ReadConn, user: str, slug: str, page: AskedPage
) -> list[CommentEvent]:
    """List the comments under a post, oldest first, page by page."""
    post = await posts.get(conn, user=user, slug=slug)
    found = await store.list_comments(conn, post.id, after=page.after, limit=page.reach)
    return await answers.show(conn, page.cut(found, position=lambda comment: comment.id))


@router.post("/comment")
async def comment_on_post(
    conn: Conn, caller: DiscussionWriter, post: AskedPost, body: WriteComment
) -> NewComment:
    """Comment on a post."""
    return await answers.added(conn, await commenting.comment(conn, caller, post, body.comment))


@router.post("/comment/{comment}/reply", responses={409: {"description": "The comment is hidden."}})
async def reply_to_post_comment(
    conn: Conn, caller: DiscussionWriter, post: AskedPost, comment: str, body: WriteComment
) -> NewComment:
    """Answer a comment under a post."""
    written = await commenting.reply(conn, caller, post, comment, body.comment)
    return await answers.added(conn, written)


@router.post("/comment/{comment}/edit", responses={409: {"description": "The comment is hidden."}})
async def edit_post_comment(
    conn: Conn, caller: DiscussionWriter, post: AskedPost, comment: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment under a post."""
    edited = await commenting.edit(conn, caller, post, comment, body.content)
    return await answers.updated(conn, edited)


@router.post("/comment/{comment}/hide")
async def hide_post_comment(
    conn: Conn, caller: DiscussionWriter, post: AskedPost, comment: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any under one's own post."""
    owns = posts.owns(caller, post)
    hidden = await commenting.hide(conn, caller, post, comment, owns_thread=owns)
    return await answers.updated(conn, hidden)


@router.post("/mute")
async def mute_post(conn: Conn, caller: DiscussionWriter, post: AskedPost) -> Muted:
    """Hear nothing more of a post; doing it again changes nothing."""
    await commenting.mute(conn, caller, post, muted=True)
    return Muted(muted=True)


@router.delete("/mute")
async def unmute_post(conn: Conn, caller: DiscussionWriter, post: AskedPost) -> Muted:
    """Hear of a post again; doing it again changes nothing."""
    await commenting.mute(conn, caller, post, muted=False)
    return Muted(muted=False)
