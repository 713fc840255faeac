"""HTTP routes for community blogs and their comments."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query
from pydantic import MISSING

from hublet.community import comments
from hublet.community.blogs import service, store
from hublet.community.blogs.schemas import Blog, BlogCard, CreateBlog, UpdateBlog
from hublet.community.comment_schemas import (
    CommentEvent,
    EditComment,
    Muted,
    NewComment,
    UpdatedComment,
    WriteComment,
)
from hublet.community.errors import BlogUpdateEmpty
from hublet.community.threads import store as threads_store
from hublet.community.threads.records import Account, Thread
from hublet.community.threads.store import find_accounts
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, DiscussionWriter

# The address of a blog: the user or organization under whose name it stands, and its slug.
_BLOG_PATH = "/api/blog/{author}/{slug}"


async def _blog_in_path(conn: Conn, author: str, slug: str) -> Thread:
    return await service.get(conn, owner=author, slug=slug)


# For routes that change something: the blog is read in their own transaction.
_BlogInPath = Annotated[Thread, Depends(_blog_in_path)]


router = Router(tags=["discussions"])


@router.post("/api/blog", responses={404: {"description": "There is no such organization."}})
async def create_blog(conn: Conn, caller: AccountOwner, body: CreateBlog) -> Blog:
    """Publish a blog under the caller's name, or an organization's where they may write."""
    organization = None if body.organization is MISSING else body.organization
    blog = await service.create(
        conn, caller, title=body.title, content=body.content, organization=organization
    )
    return await _render(conn, blog)


@router.get("/api/blog", responses=PAGED_RESPONSES)
async def list_blogs(
    conn: ReadConn,
    page: PageQuery,
    author: Annotated[str, Query(description="Only those of this user or organization.")] = "",
) -> list[BlogCard]:
    """List community blogs without their texts, newest first, page by page."""
    found = await store.list_newest(conn, owner=author, after=page.after, limit=page.reach)
    shown = page.cut(found, position=lambda blog: blog.id)
    accounts = await _accounts_of(conn, shown)
    base_url = conn.hub.settings.base_url
    return [BlogCard.of(blog, accounts, base_url=base_url) for blog in shown]


@router.get(_BLOG_PATH)
async def get_blog(conn: ReadConn, author: str, slug: str) -> Blog:
    """Get a community blog; its comments have an address of their own."""
    return await _render(conn, await service.get(conn, owner=author, slug=slug))


@router.patch(_BLOG_PATH)
async def update_blog(
    conn: Conn, caller: AccountOwner, blog: _BlogInPath, body: UpdateBlog
) -> Blog:
    """Change one's own blog; a field that is left out keeps its value, the address stays."""
    if body.title is MISSING and body.content is MISSING:
        raise BlogUpdateEmpty
    title = None if body.title is MISSING else body.title
    content = None if body.content is MISSING else body.content
    return await _render(
        conn, await service.update(conn, caller, blog, title=title, content=content)
    )


@router.delete(_BLOG_PATH)
async def delete_blog(conn: Conn, caller: AccountOwner, blog: _BlogInPath) -> Done:
    """Delete a blog with its comments: one's own, or any for hub administrators."""
    await service.delete(conn, caller, blog)
    return Done()


async def _render(conn: Reader, blog: Thread) -> Blog:
    accounts = await _accounts_of(conn, [blog])
    return Blog.of(blog, accounts, base_url=conn.hub.settings.base_url)


async def _accounts_of(conn: Reader, blogs: Sequence[Thread]) -> dict[str, Account]:
    return await find_accounts(
        conn, [account for blog in blogs for account in (blog.author_id, blog.owner_id)]
    )


comments_router = Router(prefix=_BLOG_PATH, tags=["discussions"])


@comments_router.get("/comments", responses=PAGED_RESPONSES)
async def list_blog_comments(
    conn: ReadConn, author: str, slug: str, page: PageQuery
) -> list[CommentEvent]:
    """List the comments under a community blog, oldest first, page by page."""
    blog = await service.get(conn, owner=author, slug=slug)
    found = await threads_store.list_comments(conn, blog.id, after=page.after, limit=page.reach)
    return await comments.render(conn, page.cut(found, position=lambda comment: comment.id))


@comments_router.post("/comment")
async def comment_on_blog(
    conn: Conn, caller: DiscussionWriter, blog: _BlogInPath, body: WriteComment
) -> NewComment:
    """Comment on a community blog."""
    return await comments.render_new(conn, await comments.comment(conn, caller, blog, body.comment))


@comments_router.post(
    "/comment/{comment}/reply", responses={409: {"description": "The comment is hidden."}}
)
async def reply_to_blog_comment(
    conn: Conn, caller: DiscussionWriter, blog: _BlogInPath, comment: str, body: WriteComment
) -> NewComment:
    """Answer a comment under a community blog."""
    written = await comments.reply(conn, caller, blog, comment, body.comment)
    return await comments.render_new(conn, written)


@comments_router.post(
    "/comment/{comment}/edit", responses={409: {"description": "The comment is hidden."}}
)
async def edit_blog_comment(
    conn: Conn, caller: DiscussionWriter, blog: _BlogInPath, comment: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment under a community blog."""
    edited = await comments.edit(conn, caller, blog, comment, body.content)
    return await comments.render_updated(conn, edited)


@comments_router.post("/comment/{comment}/hide")
async def hide_blog_comment(
    conn: Conn, caller: DiscussionWriter, blog: _BlogInPath, comment: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any under one's own blog."""
    owns = await service.owns(conn, caller, blog)
    hidden = await comments.hide(conn, caller, blog, comment, owns_thread=owns)
    return await comments.render_updated(conn, hidden)


@comments_router.post("/mute")
async def mute_blog(conn: Conn, caller: DiscussionWriter, blog: _BlogInPath) -> Muted:
    """Hear nothing more of a community blog; doing it again changes nothing."""
    await comments.mute(conn, caller, blog, muted=True)
    return Muted(muted=True)


@comments_router.delete("/mute")
async def unmute_blog(conn: Conn, caller: DiscussionWriter, blog: _BlogInPath) -> Muted:
    """Hear of a community blog again; doing it again changes nothing."""
    await comments.mute(conn, caller, blog, muted=False)
    return Muted(muted=False)
