"""HTTP for the comments under a paper."""

from hublet.community.commenting import answers
from hublet.community.commenting import service as commenting
from hublet.community.commenting.schemas import Muted
from hublet.community.papers import service as papers
from hublet.community.papers.auth import PAPER, AskedPaper
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

router = Router(prefix=PAPER, tags=["papers"])


@router.get("/comments", responses=LINKED)
async def list_paper_comments(conn: ReadConn, paper_id: str, page: AskedPage) -> list[CommentEvent]:
    """List the comments under a paper, oldest first, page by page."""
    paper = await papers.get(conn, paper_id)
    found = await store.list_comments(conn, paper.thread.id, after=page.after, limit=page.reach)
    return await answers.show(conn, page.cut(found, position=lambda comment: comment.id))


@router.post("/comment")
async def comment_on_paper(
    conn: Conn, caller: DiscussionWriter, paper: AskedPaper, body: WriteComment
) -> NewComment:
    """Comment on a paper."""
    written = await commenting.comment(conn, caller, paper.thread, body.comment)
    return await answers.added(conn, written)


@router.post("/comment/{comment}/reply", responses={409: {"description": "The comment is hidden."}})
async def reply_to_paper_comment(
    conn: Conn, caller: DiscussionWriter, paper: AskedPaper, comment: str, body: WriteComment
) -> NewComment:
    """Answer a comment under a paper."""
    written = await commenting.reply(conn, caller, paper.thread, comment, body.comment)
    return await answers.added(conn, written)


@router.post("/comment/{comment}/edit", responses={409: {"description": "The comment is hidden."}})
async def edit_paper_comment(
    conn: Conn, caller: DiscussionWriter, paper: AskedPaper, comment: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment under a paper."""
    edited = await commenting.edit(conn, caller, paper.thread, comment, body.content)
    return await answers.updated(conn, edited)


@router.post("/comment/{comment}/hide")
async def hide_paper_comment(
    conn: Conn, caller: DiscussionWriter, paper: AskedPaper, comment: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any for hub administrators."""
    hidden = await commenting.hide(conn, caller, paper.thread, comment, owns_thread=False)
    return await answers.updated(conn, hidden)


@router.post("/mute")
async def mute_paper(conn: Conn, caller: DiscussionWriter, paper: AskedPaper) -> Muted:
    """Hear nothing more of a paper; doing it again changes nothing."""
    await commenting.mute(conn, caller, paper.thread, muted=True)
    return Muted(muted=True)


@router.delete("/mute")
async def unmute_paper(conn: Conn, caller: DiscussionWriter, paper: AskedPaper) -> Muted:
    """Hear of a paper again; doing it again changes nothing."""
    await commenting.mute(conn, caller, paper.thread, muted=False)
    return Muted(muted=False)
