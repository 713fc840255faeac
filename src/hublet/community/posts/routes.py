"""HTTP routes for posts and their comments."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query
from pydantic import MISSING

from hublet.community import comments
from hublet.community.comment_schemas import (
    CommentEvent,
    EditComment,
    Muted,
    NewComment,
    UpdatedComment,
    WriteComment,
)
from hublet.community.posts import service, store
from hublet.community.posts.schemas import CreatePost, Post, Posts
from hublet.community.threads import store as threads_store
from hublet.community.threads.records import Thread
from hublet.community.threads.store import find_accounts
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, DiscussionWriter

# The address of a post.
_POST_PATH = "/api/posts/{user}/{slug}"


async def _post_in_path(conn: Conn, user: str, slug: str) -> Thread:
    return await service.get(conn, user=user, slug=slug)


# For routes that change something: the post is read in their own transaction.
_PostInPath = Annotated[Thread, Depends(_post_in_path)]


router = Router(tags=["discussions"])


@router.post("/api/posts")
async def create_post(conn: Conn, caller: AccountOwner, body: CreatePost) -> Post:
    """Publish a post under the caller's name; who is mentioned in it takes part in it."""
    title = None if body.title is MISSING else body.title
    post = await service.create(conn, caller, content=body.content, title=title)
    return (await _render(conn, [post]))[0]


@router.get("/api/posts")
async def list_posts(
    conn: ReadConn,
    author: Annotated[str, Query(description="Only posts of this user.")] = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Posts:
    """List posts, newest first."""
    found = await store.list_newest(conn, author=author, skip=skip, limit=limit)
    return Posts(
        socialPosts=await _render(conn, found),
        numTotalItems=await store.count_of(conn, author=author),
    )


@router.get(_POST_PATH)
async def get_post(conn: ReadConn, user: str, slug: str) -> Post:
    """Get a post; its comments have an address of their own."""
    post = await service.get(conn, user=user, slug=slug)
    return (await _render(conn, [post]))[0]


@router.delete(_POST_PATH)
async def delete_post(conn: Conn, caller: AccountOwner, post: _PostInPath) -> Done:
    """Delete a post with its comments: one's own, or any for hub administrators."""
    await service.delete(conn, caller, post)
    return Done()


async def _render(conn: Reader, posts: Sequence[Thread]) -> list[Post]:
    accounts = await find_accounts(conn, [post.owner_id for post in posts])
    return [Post.of(post, accounts, base_url=conn.hub.settings.base_url) for post in posts]


comments_router = Router(prefix=_POST_PATH, tags=["discussions"])


@comments_router.get("/comments", responses=PAGED_RESPONSES)
async def list_post_comments(
    conn: ReadConn, user: str, slug: str, page: PageQuery
) -> list[CommentEvent]:
    """List the comments under a post, oldest first, page by page."""
    post = await service.get(conn, user=user, slug=slug)
    found = await threads_store.list_comments(conn, post.id, after=page.after, limit=page.reach)
    return await comments.render(conn, page.cut(found, position=lambda comment: comment.id))


@comments_router.post("/comment")
async def comment_on_post(
    conn: Conn, caller: DiscussionWriter, post: _PostInPath, body: WriteComment
) -> NewComment:
    """Comment on a post."""
    return await comments.render_new(conn, await comments.comment(conn, caller, post, body.comment))


@comments_router.post(
    "/comment/{comment}/reply", responses={409: {"description": "The comment is hidden."}}
)
async def reply_to_post_comment(
    conn: Conn, caller: DiscussionWriter, post: _PostInPath, comment: str, body: WriteComment
) -> NewComment:
    """Answer a comment under a post."""
    written = await comments.reply(conn, caller, post, comment, body.comment)
    return await comments.render_new(conn, written)


@comments_router.post(
    "/comment/{comment}/edit", responses={409: {"description": "The comment is hidden."}}
)
async def edit_post_comment(
    conn: Conn, caller: DiscussionWriter, post: _PostInPath, comment: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment under a post."""
    edited = await comments.edit(conn, caller, post, comment, body.content)
    return await comments.render_updated(conn, edited)


@comments_router.post("/comment/{comment}/hide")
async def hide_post_comment(
    conn: Conn, caller: DiscussionWriter, post: _PostInPath, comment: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any under one's own post."""
    owns = service.owns(caller, post)
    hidden = await comments.hide(conn, caller, post, comment, owns_thread=owns)
    return await comments.render_updated(conn, hidden)


@comments_router.post("/mute")
async def mute_post(conn: Conn, caller: DiscussionWriter, post: _PostInPath) -> Muted:
    """Hear nothing more of a post; doing it again changes nothing."""
    await comments.mute(conn, caller, post, muted=True)
    return Muted(muted=True)


@comments_router.delete("/mute")
async def unmute_post(conn: Conn, caller: DiscussionWriter, post: _PostInPath) -> Muted:
    """Hear of a post again; doing it again changes nothing."""
    await comments.mute(conn, caller, post, muted=False)
    return Muted(muted=False)
