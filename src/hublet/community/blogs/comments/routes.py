"""HTTP for the comments under a community blog."""

from hublet.community.blogs import service as blogs
from hublet.community.blogs.auth import BLOG, AskedBlog
from hublet.community.commenting import answers
from hublet.community.commenting import service as commenting
from hublet.community.commenting.schemas import Muted
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

router = Router(prefix=BLOG, tags=["discussions"])


@router.get("/comments", responses=LINKED)
async def list_blog_comments(
    conn: ReadConn, author: str, slug: str, page: AskedPage
) -> list[CommentEvent]:
    """List the comments under a community blog, oldest first, page by page."""
    blog = await blogs.get(conn, owner=author, slug=slug)
    found = await store.list_comments(conn, blog.id, after=page.after, limit=page.reach)
    return await answers.show(conn, page.cut(found, position=lambda comment: comment.id))


@router.post("/comment")
async def comment_on_blog(
    conn: Conn, caller: DiscussionWriter, blog: AskedBlog, body: WriteComment
) -> NewComment:
    """Comment on a community blog."""
    return await answers.added(conn, await commenting.comment(conn, caller, blog, body.comment))


@router.post("/comment/{comment}/reply", responses={409: {"description": "The comment is hidden."}})
async def reply_to_blog_comment(
    conn: Conn, caller: DiscussionWriter, blog: AskedBlog, comment: str, body: WriteComment
) -> NewComment:
    """Answer a comment under a community blog."""
    written = await commenting.reply(conn, caller, blog, comment, body.comment)
    return await answers.added(conn, written)


@router.post("/comment/{comment}/edit", responses={409: {"description": "The comment is hidden."}})
async def edit_blog_comment(
    conn: Conn, caller: DiscussionWriter, blog: AskedBlog, comment: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment under a community blog."""
    edited = await commenting.edit(conn, caller, blog, comment, body.content)
    return await answers.updated(conn, edited)


@router.post("/comment/{comment}/hide")
async def hide_blog_comment(
    conn: Conn, caller: DiscussionWriter, blog: AskedBlog, comment: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any under one's own blog."""
    owns = await blogs.owns(conn, caller, blog)
    hidden = await commenting.hide(conn, caller, blog, comment, owns_thread=owns)
    return await answers.updated(conn, hidden)


@router.post("/mute")
async def mute_blog(conn: Conn, caller: DiscussionWriter, blog: AskedBlog) -> Muted:
    """Hear nothing more of a community blog; doing it again changes nothing."""
    await commenting.mute(conn, caller, blog, muted=True)
    return Muted(muted=True)


@router.delete("/mute")
async def unmute_blog(conn: Conn, caller: DiscussionWriter, blog: AskedBlog) -> Muted:
    """Hear of a community blog again; doing it again changes nothing."""
    await commenting.mute(conn, caller, blog, muted=False)
    return Muted(muted=False)
