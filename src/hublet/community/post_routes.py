"""HTTP routes for posts and their comments."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query
from pydantic import MISSING

from hublet.accounts.organizations.store import find_accounts
from hublet.community import posts as community_posts
from hublet.community.comment_routes import CommentedKind, create_comments_router
from hublet.community.publication_schemas import CreatePost, Post, Posts
from hublet.community.threads import store
from hublet.community.threads.records import Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner
from hublet.tokens.records import Caller

_POST_PATH = "/api/posts/{user}/{slug}"


async def _post_to_read(conn: ReadConn, user: str, slug: str) -> Thread:
    return await community_posts.get(conn, user=user, slug=slug)


async def _post_to_change(conn: Conn, user: str, slug: str) -> Thread:
    return await community_posts.get(conn, user=user, slug=slug)


_PostToRead = Annotated[Thread, Depends(_post_to_read)]
_PostToChange = Annotated[Thread, Depends(_post_to_change)]


router = Router(tags=["discussions"])


@router.post("/api/posts")
async def create_post(conn: Conn, caller: AccountOwner, body: CreatePost) -> Post:
    """Publish a post under the caller's name; who is mentioned in it takes part in it."""
    title = None if body.title is MISSING else body.title
    post = await community_posts.create(conn, caller, content=body.content, title=title)
    return (await _render(conn, [post]))[0]


@router.get("/api/posts")
async def list_posts(
    conn: ReadConn,
    author: Annotated[str, Query(description="Only posts of this user.")] = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Posts:
    """List posts, newest first."""
    posts = await store.list_newest(conn, ThreadKind.post, owner=author, skip=skip, limit=limit)
    return Posts(
        socialPosts=await _render(conn, posts),
        numTotalItems=await store.count_of(conn, ThreadKind.post, owner=author),
    )


@router.get(_POST_PATH)
async def get_post(conn: ReadConn, post: _PostToRead) -> Post:
    """Get a post; its comments have an address of their own."""
    return (await _render(conn, [post]))[0]


@router.delete(_POST_PATH)
async def delete_post(conn: Conn, caller: AccountOwner, post: _PostToChange) -> Done:
    """Delete a post with its comments: one's own, or any for hub administrators."""
    await community_posts.delete(conn, caller, post)
    return Done()


async def _render(conn: Reader, posts: Sequence[Thread]) -> list[Post]:
    accounts = await find_accounts(conn, [post.owner_id for post in posts])
    return [Post.of(post, accounts, base_url=conn.hub.settings.base_url) for post in posts]


async def _owns(_conn: Reader, caller: Caller, post: Thread) -> bool:
    return community_posts.owns(caller, post)


comments_router = create_comments_router(
    CommentedKind(
        name="post",
        phrase="a post",
        path=_POST_PATH,
        tag="discussions",
        thread_to_read=_post_to_read,
        thread_to_change=_post_to_change,
        owns=_owns,
        hideable="any under one's own post",
    )
)
