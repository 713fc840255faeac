"""Rules of community blogs: their slugs, who writes, changes and deletes them."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from hublet.accounts.access import role_of
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role
from hublet.community.comments import PUBLIC_CONTEXT, is_hub_administrator, lock_thread
from hublet.community.errors import NotYourThread, ThreadNotFound
from hublet.community.threads import service as threads
from hublet.community.threads import store
from hublet.community.threads.records import Thread, ThreadKind
from hublet.community.threads.service import ThreadDifference
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id, random_text
from hublet.tokens.records import Caller

MAX_SLUG_LENGTH = 80

_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")
# With more blogs of one title the suffix is random, so that not every number must be tried.
_MAX_COUNTED_SLUGS = 9


def slug_of(title: str) -> str:
    """Return the title in ASCII letters, digits and hyphens, without accents and other scripts."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _NOT_IN_SLUGS.sub("-", plain.replace("'", "")).strip("-")
    return words[:MAX_SLUG_LENGTH].rstrip("-") or "blog"


def counted_slugs(title: str) -> Iterator[str]:
    """Yield the slugs to try, in this order."""
    slug = slug_of(title)
    yield slug
    for number in range(2, _MAX_COUNTED_SLUGS + 1):
        yield f"{slug}-{number}"


async def create(
    conn: Connection, caller: Caller, *, title: str, content: str, organization: str | None
) -> Thread:
    """Publish a blog of the caller, or of an organization in which the caller may write."""
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
    await threads.open_thread(conn, blog, PUBLIC_CONTEXT, actor_id=caller.user_id, message=None)
    return blog


async def _owner_id(conn: Reader, caller: Caller, organization: str | None) -> str:
    if organization is None:
        return caller.user_id
    owner = await organizations.get_as(
        conn, organization, user_id=caller.user_id, needed=Role.write
    )
    caller.check_reaches(owner.id)
    return owner.id


async def _add(conn: Connection, blog: Thread) -> Thread:
    """Add the blog under the first slug that is free."""
    for slug in counted_slugs(blog.title):
        named = replace(blog, slug=slug)
        if await store.add(conn, named):
            return named
    while True:
        drawn = random_text(8, "0123456789abcdef")
        named = replace(blog, slug=f"{slug_of(blog.title)}-{drawn}")
        if await store.add(conn, named):
            return named


async def get(conn: Reader, *, owner: str, slug: str) -> Thread:
    blog = await store.find_by_slug(conn, ThreadKind.blog, owner=owner, slug=slug)
    if blog is None:
        raise ThreadNotFound(f"blog {owner}/{slug}")
    return blog


async def owns(conn: Reader, caller: Caller, blog: Thread) -> bool:
    """Tell whether the caller owns the blog.

    A blog of an organization belongs to its author, as long as the author may write there, and to
    the administrators of the organization.
    """
    if blog.owner_id == caller.user_id:
        return True
    if caller.is_blocked(blog.owner_id or ""):
        return False
    role = await role_of(conn, blog.owner_id or "", user_id=caller.user_id)
    needed = Role.write if blog.author_id == caller.user_id else Role.admin
    return role is not None and role.covers(needed)


async def update(
    conn: Connection, caller: Caller, blog: Thread, *, title: str | None, content: str | None
) -> Thread:
    """Change the title or the text; the blog keeps its address."""
    blog = await lock_thread(conn, blog)
    if not await owns(conn, caller, blog):
        raise NotYourThread("edit", "blog")
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
    difference = ThreadDifference(changed=tuple(changed), body_before=blog.body)
    await threads.update(conn, edited, PUBLIC_CONTEXT, difference, actor_id=caller.user_id)
    # The store sets the time of the change.
    return await lock_thread(conn, edited)


async def delete(conn: Connection, caller: Caller, blog: Thread) -> None:
    """Delete one's own blog with its comments; hub administrators delete any."""
    blog = await lock_thread(conn, blog)
    if not is_hub_administrator(caller) and not await owns(conn, caller, blog):
        raise NotYourThread("delete", "blog")
    await threads.delete(conn, blog, PUBLIC_CONTEXT, actor_id=caller.user_id)
