"""Rules of community blogs: who writes them, changes them and takes them back."""

from dataclasses import replace

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.community.blogs import store
from hublet.community.blogs.slugs import counted_slugs, slug_of
from hublet.community.commenting.errors import NotYours
from hublet.community.commenting.service import PUBLIC, administers, hold
from hublet.community.threads import service as threads
from hublet.community.threads import store as threads_store
from hublet.community.threads.errors import ThreadNotFound
from hublet.community.threads.records import Thread, ThreadKind
from hublet.community.threads.service import Difference
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id, random_text
from hublet.tokens.records import Caller


async def create(
    conn: Connection, caller: Caller, *, title: str, content: str, organization: str | None
) -> Thread:
    """Publish a blog under the caller's name, or an organization's where the caller may write."""
    moment = now()
    blog = Thread(
        id=new_object_id(),
        kind=ThreadKind.blog,
        title=title,
        author_id=caller.user_id,
        owner_id=await _owner_id(conn, caller, organization),
        body=content,
        created_at=moment,
        updated_at=moment,
    )
    blog = await _add(conn, blog)
    await threads.open_thread(conn, blog, PUBLIC, actor_id=caller.user_id, message=None)
    return blog


async def _owner_id(conn: Reader, caller: Caller, organization: str | None) -> str:
    if organization is None:
        return caller.user_id
    owner = await organizations.get_as(
        conn, organization, user_id=caller.user_id, needed=Role.write
    )
    return owner.id


async def _add(conn: Connection, blog: Thread) -> Thread:
    """Add the blog under the first name that is free."""
    for slug in counted_slugs(blog.title):
        named = replace(blog, slug=slug)
        if await threads_store.add(conn, named):
            return named
    while True:
        drawn = random_text(8, "0123456789abcdef")
        named = replace(blog, slug=f"{slug_of(blog.title)}-{drawn}")
        if await threads_store.add(conn, named):
            return named


async def get(conn: Reader, *, owner: str, slug: str) -> Thread:
    blog = await store.find(conn, owner=owner, slug=slug)
    if blog is None:
        raise ThreadNotFound(f"blog {owner}/{slug}")
    return blog


async def owns(conn: Reader, caller: Caller, blog: Thread) -> bool:
    """Tell whether it is the caller's blog.

    An organization's belongs to its author, for as long as they may write there, and to the
    organization's administrators.
    """
    if blog.owner_id == caller.user_id:
        return True
    role = await store.role_in(conn, blog.owner_id or "", user_id=caller.user_id)
    needed = Role.write if blog.author_id == caller.user_id else Role.admin
    return role is not None and role.covers(needed)


async def update(
    conn: Connection, caller: Caller, blog: Thread, *, title: str | None, content: str | None
) -> Thread:
    """Change the title or the text; the blog keeps its address."""
    blog = await hold(conn, blog)
    if not await owns(conn, caller, blog):
        raise NotYours("edit", "blog")
    edited = replace(blog, title=title or blog.title, body=content or blog.body)
    changed = [
        name
        for name, differs in (
            ("title", edited.title != blog.title),
            ("content", edited.body != blog.body),
        )
        if differs
    ]
    if not changed:
        return blog
    difference = Difference(changed=tuple(changed), body_before=blog.body)
    await threads.change(conn, edited, PUBLIC, difference, actor_id=caller.user_id)
    # The moment of the change is the store's.
    return await hold(conn, edited)


async def delete(conn: Connection, caller: Caller, blog: Thread) -> None:
    """Delete one's own blog with its comments; hub administrators delete any."""
    blog = await hold(conn, blog)
    if not administers(caller) and not await owns(conn, caller, blog):
        raise NotYours("delete", "blog")
    await threads.delete(conn, blog, PUBLIC, actor_id=caller.user_id)
