"""Views of collections: which a caller sees, what they see of each, and the cursors of lists."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hublet.accounts.errors import ResourceGroupNotFound, RoleNeeded
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.community.collections import items, store
from hublet.community.collections.records import (
    MOST_ITEMS,
    MOST_LISTED_ITEMS,
    CollectionRecord,
    CollectionSort,
    CollectionView,
    CollectionViewer,
)
from hublet.community.errors import CollectionNotFound
from hublet.core.clock import to_micros
from hublet.core.database import Reader
from hublet.core.paging import InvalidCursor
from hublet.repos.access import private_reach_of
from hublet.repos.browse import store as lists_store
from hublet.repos.records import Reach
from hublet.tokens.records import Caller, Scope

_CURSOR = re.compile(r"(\d{1,18}):([0-9a-f]{24})")


async def viewer_of(conn: Reader, caller: Caller | None) -> CollectionViewer:
    """Return which private collections and repositories a caller may see."""
    if caller is None:
        return CollectionViewer()
    roles = await lists_store.roles_of_user(conn, caller.user_id)
    return CollectionViewer(
        user_id=caller.user_id,
        collections=_reach_of(caller, roles),
        repos=private_reach_of(caller, roles),
    )


def _reach_of(caller: Caller, roles: Mapping[str, Role]) -> Reach | None:
    owners = [caller.user_id, *roles]
    readable = [owner for owner in owners if caller.may(Scope.read_collections, on=owner)]
    if not readable:
        return None
    return Reach(
        user_id=caller.user_id,
        readable=tuple(readable),
        where_created=(),
        created_with=caller.origin,
        administered=tuple(owner for owner, role in roles.items() if role is Role.admin),
    )


async def get(
    conn: Reader, viewer: CollectionViewer, *, namespace: str, slug: str
) -> CollectionRecord:
    """Return the collection that an address names, by its id or by a short slug, if it is seen.

    The id decides where there is one, so that a slug of an older title still leads there.
    """
    _, collection_id = items.split_slug(slug)
    if collection_id:
        listed = await store.list_visible(conn, [collection_id], viewer.collections)
        found = next((each for each in listed if _is_owner(each, namespace)), None)
    else:
        found = await store.find_by_slug(conn, viewer, owner=namespace, slug=slug)
    if found is None:
        raise CollectionNotFound(f"{namespace}/{slug}")
    return found


def _is_owner(collection: CollectionRecord, namespace: str) -> bool:
    return name_key(collection.owner.name) == name_key(namespace)


async def find_resource_group(
    conn: Reader, caller: Caller | None, collection: CollectionRecord
) -> ResourceGroupRecord | None:
    """Return the group of a collection, for its members and for administrators."""
    if collection.resource_group_id is None or caller is None:
        return None
    with suppress(RoleNeeded, ResourceGroupNotFound):
        organization = await organizations.get_as(
            conn, collection.owner.name, user_id=caller.user_id, needed=Role.read
        )
        return await resource_groups.get_visible(
            conn, organization, collection.resource_group_id, user_id=caller.user_id
        )
    return None


async def view(
    conn: Reader, caller: Caller | None, viewer: CollectionViewer, collection: CollectionRecord
) -> CollectionView:
    """Return the whole collection as the caller sees it."""
    shown = await items.load(conn, viewer, [collection.id], most=MOST_ITEMS)
    of_owner = await store.list_of_owner(conn, collection.owner_id, viewer.collections)
    order = [each.id for each in of_owner]
    return CollectionView(
        collection=collection,
        items=shown[collection.id],
        is_upvoted=bool(await _voted(conn, viewer, [collection])),
        position=order.index(collection.id) if collection.id in order else 0,
        resource_group=await find_resource_group(conn, caller, collection),
    )


async def view_list(
    conn: Reader, viewer: CollectionViewer, found: Sequence[CollectionRecord]
) -> list[CollectionView]:
    """Return collections as lists show them, with their first items."""
    ids = [each.id for each in found]
    shown = await items.load(conn, viewer, ids, most=MOST_LISTED_ITEMS)
    voted = await _voted(conn, viewer, found)
    return [
        CollectionView(collection=each, items=shown[each.id], is_upvoted=each.id in voted)
        for each in found
    ]


async def _voted(
    conn: Reader, viewer: CollectionViewer, found: Sequence[CollectionRecord]
) -> set[str]:
    if viewer.user_id is None:
        return set()
    return await store.voted_by(conn, viewer.user_id, [each.id for each in found])


def write_cursor(collection: CollectionRecord, sort: CollectionSort) -> str:
    values = {
        CollectionSort.update: to_micros(collection.updated_at),
        CollectionSort.trending: collection.trending,
        CollectionSort.upvotes: collection.upvotes,
    }
    return f"{values[sort]}:{collection.id}"


def read_cursor(text: str) -> tuple[int, str] | None:
    """Return None at the start of a list; refuse what `write_cursor` did not write."""
    if not text:
        return None
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return int(match[1]), match[2]
