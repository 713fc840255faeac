"""HTTP routes for community blogs and their comments."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import MISSING

from hublet.accounts.organizations.store import find_accounts
from hublet.community import blogs as community_blogs
from hublet.community.comment_routes import CommentedKind, create_comments_router
from hublet.community.errors import BlogUpdateEmpty
from hublet.community.publication_schemas import Blog, BlogCard, CreateBlog, UpdateBlog
from hublet.community.threads import store
from hublet.community.threads.records import Accounts, Thread, ThreadKind
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.repos.schemas import RepoResourceGroupEnvelope, SetRepoResourceGroup
from hublet.tokens.auth import AccountOwner, AnyCaller, actor_of

# The address of a blog: the name of the user or organization that owns it, and its slug.
_BLOG_PATH = "/api/blog/{author}/{slug}"


async def _blog_to_read(conn: ReadConn, author: str, slug: str) -> Thread:
    return await community_blogs.get(conn, owner=author, slug=slug)


async def _blog_to_change(conn: Conn, author: str, slug: str) -> Thread:
    return await community_blogs.get(conn, owner=author, slug=slug)


_BlogToRead = Annotated[Thread, Depends(_blog_to_read)]
_BlogToChange = Annotated[Thread, Depends(_blog_to_change)]


router = Router(tags=["discussions"])


@router.post("/api/blog", responses={404: {"description": "There is no such organization."}})
async def create_blog(conn: Conn, caller: AccountOwner, body: CreateBlog) -> Blog:
    """Publish a blog under the caller's name, or an organization's where they may write."""
    organization = None if body.organization is MISSING else body.organization
    blog = await community_blogs.create(
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
    newest = await store.list_newest(
        conn, ThreadKind.blog, owner=author, after=page.after, limit=page.reach
    )
    blogs = page.cut(newest, position=lambda blog: blog.id)
    accounts = await _accounts_of(conn, blogs)
    base_url = conn.hub.settings.base_url
    return [BlogCard.of(blog, accounts, base_url=base_url) for blog in blogs]


@router.get(_BLOG_PATH)
async def get_blog(conn: ReadConn, blog: _BlogToRead) -> Blog:
    """Get a community blog; its comments have an address of their own."""
    return await _render(conn, blog)


@router.patch(_BLOG_PATH)
async def update_blog(
    conn: Conn, caller: AccountOwner, blog: _BlogToChange, body: UpdateBlog
) -> Blog:
    """Change one's own blog; a field that is left out keeps its value, the address stays."""
    if body.title is MISSING and body.content is MISSING:
        raise BlogUpdateEmpty
    title = None if body.title is MISSING else body.title
    content = None if body.content is MISSING else body.content
    return await _render(
        conn, await community_blogs.update(conn, caller, blog, title=title, content=content)
    )


@router.delete(_BLOG_PATH)
async def delete_blog(conn: Conn, caller: AccountOwner, blog: _BlogToChange) -> Done:
    """Delete a blog with its comments: one's own, or any for hub administrators."""
    await community_blogs.delete(conn, caller, blog)
    return Done()


@router.get(f"{_BLOG_PATH}/resource-group")
async def get_blog_resource_group(
    conn: ReadConn, caller: AnyCaller, blog: _BlogToRead
) -> RepoResourceGroupEnvelope:
    """Show the resource group of a blog, to its members and to administrators."""
    group = await community_blogs.find_resource_group(conn, caller, blog)
    return RepoResourceGroupEnvelope.of(group)


@router.post(f"{_BLOG_PATH}/resource-group")
async def set_blog_resource_group(
    request: Request,
    conn: Conn,
    caller: AccountOwner,
    blog: _BlogToChange,
    body: SetRepoResourceGroup,
) -> RepoResourceGroupEnvelope:
    """Put a blog of an organization into a resource group, or out of one, as an administrator.

    Everybody reads a blog; those who may write in its group may edit it.
    """
    group = await community_blogs.set_resource_group(
        conn, actor_of(request, caller), caller, blog, body.resourceGroupId
    )
    return RepoResourceGroupEnvelope.of(group)


async def _render(conn: Reader, blog: Thread) -> Blog:
    accounts = await _accounts_of(conn, [blog])
    return Blog.of(blog, accounts, base_url=conn.hub.settings.base_url)


async def _accounts_of(conn: Reader, blogs: Sequence[Thread]) -> Accounts:
    return await find_accounts(
        conn, [account for blog in blogs for account in (blog.author_id, blog.owner_id)]
    )


comments_router = create_comments_router(
    CommentedKind(
        name="blog",
        phrase="a community blog",
        path=_BLOG_PATH,
        tag="discussions",
        thread_to_read=_blog_to_read,
        thread_to_change=_blog_to_change,
        owns=community_blogs.owns,
        hideable="any under one's own blog",
    )
)
