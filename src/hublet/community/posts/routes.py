"""HTTP for posts."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from pydantic import MISSING

from hublet.community.authors.store import find_accounts
from hublet.community.posts import service, store
from hublet.community.posts.auth import POST, AskedPost
from hublet.community.posts.schemas import CreatePost, Post, Posts
from hublet.community.threads.records import Thread
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner

router = Router(tags=["discussions"])


@router.post("/api/posts")
async def create_post(conn: Conn, caller: AccountOwner, body: CreatePost) -> Post:
    """Publish a post under the caller's name; who is mentioned in it takes part in it."""
    title = None if body.title is MISSING else body.title
    post = await service.create(conn, caller, content=body.content, title=title)
    return (await _shown(conn, [post]))[0]


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
        socialPosts=await _shown(conn, found),
        numTotalItems=await store.count_of(conn, author=author),
    )


@router.get(POST)
async def get_post(conn: ReadConn, user: str, slug: str) -> Post:
    """Get a post; its comments have an address of their own."""
    post = await service.get(conn, user=user, slug=slug)
    return (await _shown(conn, [post]))[0]


@router.delete(POST)
async def delete_post(conn: Conn, caller: AccountOwner, post: AskedPost) -> Done:
    """Delete a post with its comments: one's own, or any for hub administrators."""
    await service.delete(conn, caller, post)
    return Done()


async def _shown(conn: Reader, posts: Sequence[Thread]) -> list[Post]:
    accounts = await find_accounts(conn, [post.owner_id for post in posts])
    return [Post.of(post, accounts, base_url=conn.hub.settings.base_url) for post in posts]
