"""Rules of community blogs: their slugs, who writes, changes and deletes them."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

from hublet.accounts.access import role_of
from hublet.accounts.errors import ResourceGroupNotFound
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations.store import find_accounts
from hublet.accounts.records import Actor, Organization, ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.community.comments import PUBLIC_CONTEXT, is_hub_administrator, lock_thread
from hublet.community.errors import BlogWithoutGroups, NotYourThread, ThreadNotFound
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


def slug_of(title: str, *, otherwise: str = "blog") -> str:
    """Return the title in ASCII letters, digits and hyphens, without accents and other scripts."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = _NOT_IN_SLUGS.sub("-", plain.replace("'", "")).strip("-")
    return words[:MAX_SLUG_LENGTH].rstrip("-") or otherwise


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

    A blog of an organization belongs to its author, as long as the author may write there, to the
    administrators of the organization, and to those who may write in the resource group it is in.
    """
    if blog.owner_id == caller.user_id:
        return True
    organization_id = blog.owner_id or ""
    if caller.is_blocked(organization_id):
        return False
    role = await role_of(conn, organization_id, user_id=caller.user_id)
    needed = Role.write if blog.author_id == caller.user_id else Role.admin
    if role is not None and role.covers(needed):
        return True
    group_id = _group_id_of(blog)
    if role is None or group_id is None:
        return False
    in_group = await role_of(
        conn, organization_id, user_id=caller.user_id, resource_group_id=group_id
    )
    return in_group is not None and in_group.covers(Role.write)


def _group_id_of(blog: Thread) -> str | None:
    group_id: str | None = (blog.details or {}).get("resource_group_id")
    return group_id


async def find_resource_group(
    conn: Reader, caller: Caller, blog: Thread
) -> ResourceGroupRecord | None:
    """Return the resource group of a blog, for its members and for administrators."""
    organization = await _organization_of(conn, blog)
    if organization is None or (group_id := _group_id_of(blog)) is None:
        return None
    try:
        return await resource_groups.get_visible(
            conn, organization, group_id, user_id=caller.user_id
        )
    except ResourceGroupNotFound:
        # It was deleted, or is none of the caller's.
        return None


async def set_resource_group(
    conn: Connection, actor: Actor, caller: Caller, blog: Thread, group_id: str | None
) -> ResourceGroupRecord | None:
    """Put a blog into a resource group of its organization, or out of one, as an administrator."""
    blog = await lock_thread(conn, blog)
    organization = await _organization_of(conn, blog)
    if organization is None:
        raise BlogWithoutGroups
    await organizations.get_administered(conn, organization.name, user_id=caller.user_id)
    group = None
    if group_id is not None:
        # Every plan may take a blog out of its group, not every plan may put one in.
        await resource_groups.get_organization(conn, organization.name, user_id=caller.user_id)
        group = await resource_groups.get(conn, organization, group_id)
    details = {"resource_group_id": group_id} if group_id else None
    await store.update(conn, replace(blog, details=details))
    await audit.record(
        conn, organization.id, actor, "blog.resource-group", target=blog.slug or "",
        details={"resource_group": group.name if group else None},
    )  # fmt: skip
    return group


async def _organization_of(conn: Reader, blog: Thread) -> Organization | None:
    if blog.owner_id is None or blog.owner_id == blog.author_id:
        return None
    owner = (await find_accounts(conn, [blog.owner_id])).get(blog.owner_id)
    return None if owner is None else await organizations.get(conn, owner.name)


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
