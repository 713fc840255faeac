"""HTTP for community blogs."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from pydantic import MISSING

from hublet.community.authors.records import Account
from hublet.community.authors.store import find_accounts
from hublet.community.blogs import service, store
from hublet.community.blogs.auth import BLOG, AskedBlog
from hublet.community.blogs.errors import NothingToChange
from hublet.community.blogs.schemas import Blog, BlogCard, CreateBlog, UpdateBlog
from hublet.community.threads.records import Thread
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner

router = Router(tags=["discussions"])


@router.post("/api/blog", responses={404: {"description": "There is no such organization."}})
async def create_blog(conn: Conn, caller: AccountOwner, body: CreateBlog) -> Blog:
    """Publish a blog under the caller's name, or an organization's where they may write."""
    organization = None if body.organization is MISSING else body.organization
    blog = await service.create(
        conn, caller, title=body.title, content=body.content, organization=organization
    )
    return await _shown(conn, blog)


@router.get("/api/blog", responses=LINKED)
async def list_blogs(
    conn: ReadConn,
    page: AskedPage,
    author: Annotated[str, Query(description="Only those of this user or organization.")] = "",
) -> list[BlogCard]:
    """List community blogs without their texts, newest first, page by page."""
    found = await store.list_newest(conn, owner=author, after=page.after, limit=page.reach)
    shown = page.cut(found, position=lambda blog: blog.id)
    accounts = await _accounts_of(conn, shown)
    base_url = conn.hub.settings.base_url
    return [BlogCard.of(blog, accounts, base_url=base_url) for blog in shown]


@router.get(BLOG)
async def get_blog(conn: ReadConn, author: str, slug: str) -> Blog:
    """Get a community blog; its comments have an address of their own."""
    return await _shown(conn, await service.get(conn, owner=author, slug=slug))


@router.patch(BLOG)
async def update_blog(conn: Conn, caller: AccountOwner, blog: AskedBlog, body: UpdateBlog) -> Blog:
    """Change one's own blog; a field that is left out keeps its value, the address stays."""
    if body.title is MISSING and body.content is MISSING:
        raise NothingToChange
    title = None if body.title is MISSING else body.title
    content = None if body.content is MISSING else body.content
    return await _shown(
        conn, await service.update(conn, caller, blog, title=title, content=content)
    )


@router.delete(BLOG)
async def delete_blog(conn: Conn, caller: AccountOwner, blog: AskedBlog) -> Done:
    """Delete a blog with its comments: one's own, or any for hub administrators."""
    await service.delete(conn, caller, blog)
    return Done()


async def _shown(conn: Reader, blog: Thread) -> Blog:
    accounts = await _accounts_of(conn, [blog])
    return Blog.of(blog, accounts, base_url=conn.hub.settings.base_url)


async def _accounts_of(conn: Reader, blogs: Sequence[Thread]) -> dict[str, Account]:
    return await find_accounts(
        conn, [account for blog in blogs for account in (blog.author_id, blog.owner_id)]
    )
