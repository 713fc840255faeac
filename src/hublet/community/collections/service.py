"""Rules of collections: who creates, changes and deletes them, and votes for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hublet.accounts.access import role_of
from hublet.accounts.errors import OrganizationNotFound
from hublet.accounts.names import name_key
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import (
    Actor,
    DefaultVisibility,
    Organization,
    Owner,
    OwnerType,
    Role,
)
from hublet.accounts.resource_groups import service as resource_groups
from hublet.community.blogs import slug_of
from hublet.community.collections import items, items_store, store, views
from hublet.community.collections.records import (
    MOST_COLLECTIONS,
    CollectionChange,
    CollectionRecord,
    CollectionViewer,
    ItemAddress,
    ItemChange,
    ItemTarget,
    NewCollection,
)
from hublet.community.comments import is_hub_administrator
from hublet.community.errors import (
    CannotCreateCollection,
    CollectionExists,
    CollectionNotFound,
    InvalidCollection,
    NotYourCollection,
)
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.core.outbox import publish
from hublet.events import CollectionCreated, CollectionDeleted, CollectionUpdated
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Caller, Scope


async def may_change(conn: Reader, caller: Caller | None, collection: CollectionRecord) -> bool:
    """Tell whether a caller who sees the collection may change it."""
    return (
        caller is not None
        and caller.may(Scope.write_collections, on=collection.owner_id)
        and await _may_as_member(conn, caller, collection)
    )


async def _may_as_member(conn: Reader, caller: Caller, collection: CollectionRecord) -> bool:
    if collection.owner_id == caller.user_id:
        return True
    role = await role_of(
        conn,
        collection.owner_id,
        user_id=caller.user_id,
        resource_group_id=collection.resource_group_id,
    )
    # As in repositories, a contributor is a writer of what they created.
    is_own = collection.creator_id == caller.user_id
    return role is not None and role.covers(Role.contributor if is_own else Role.write)


async def _lock(
    conn: Connection, caller: Caller, collection: CollectionRecord
) -> tuple[CollectionRecord, CollectionViewer]:
    """Lock a collection for a caller who may change it; return it as it is now, and who they are."""
    await conn.lock(f"collection {collection.id}")
    viewer = await views.viewer_of(conn, caller)
    current = await store.list_visible(conn, [collection.id], viewer.collections)
    if not current:
        raise CollectionNotFound(collection.full_slug)
    if not caller.may(Scope.write_collections, on=current[0].owner_id):
        raise ScopeNeeded([Scope.write_collections])
    if not await _may_as_member(conn, caller, current[0]):
        raise NotYourCollection(current[0].full_slug)
    return current[0], viewer


async def create(
    conn: Connection, caller: Caller, actor: Actor, new: NewCollection
) -> CollectionRecord:
    """Create a collection, with its first item if there is one."""
    owner, organization = await _owner_of_new(conn, caller, new)
    is_private = new.is_private
    if is_private is None:
        is_private = (
            organization is not None
            and organization.default_visibility is DefaultVisibility.private
        )
    moment = now()
    collection = CollectionRecord(
        id=new_object_id(),
        owner=owner,
        creator_id=caller.user_id,
        title=new.title,
        slug=slug_of(new.title, otherwise="collection"),
        description=new.description,
        is_private=is_private,
        resource_group_id=new.resource_group_id,
        created_at=moment,
        updated_at=moment,
    )
    viewer = await views.viewer_of(conn, caller)
    await conn.lock(f"collections of {owner.id}")
    await _check_new(conn, viewer, collection)
    await store.add(conn, collection)
    await publish(
        conn,
        CollectionCreated(collection_id=collection.id, owner_id=owner.id, actor_id=caller.user_id),
    )
    await _record_change(conn, actor, collection, "collection.create")
    if new.item is not None:
        await items.add(conn, caller, viewer, collection, new.item)
    return collection


async def _check_new(conn: Reader, viewer: CollectionViewer, collection: CollectionRecord) -> None:
    if len(await store.order_of_owner(conn, collection.owner_id)) >= MOST_COLLECTIONS:
        raise InvalidCollection(f"namespace: an owner has at most {MOST_COLLECTIONS} collections.")
    await _check_title(conn, viewer, collection)


async def _check_title(
    conn: Reader, viewer: CollectionViewer, collection: CollectionRecord
) -> None:
    """Refuse the title of another collection of the owner; one that the caller sees not is ignored."""
    for other in await store.list_of_owner(conn, collection.owner_id, viewer.collections):
        if other.id != collection.id and other.title.casefold() == collection.title.casefold():
            raise CollectionExists(other.title, slug=other.full_slug)


async def _owner_of_new(
    conn: Reader, caller: Caller, new: NewCollection
) -> tuple[Owner, Organization | None]:
    organization = None
    if name_key(new.namespace) == name_key(caller.user_name):
        if new.resource_group_id is not None:
            raise CannotCreateCollection(
                new.namespace, "resourceGroupId: only organizations have resource groups."
            )
        owner = Owner(id=caller.user_id, name=caller.user_name, type=OwnerType.user)
    else:
        organization = await _organization_of_new(conn, caller, new)
        owner = Owner(id=organization.id, name=organization.name, type=OwnerType.organization)
    if not caller.may(Scope.write_collections, on=owner.id):
        raise CannotCreateCollection(
            new.namespace, f"the token lacks the scope {Scope.write_collections}."
        )
    return owner, organization


async def _organization_of_new(conn: Reader, caller: Caller, new: NewCollection) -> Organization:
    # In a resource group the role there counts, for members of the organization.
    group_id = new.resource_group_id
    needed = Role.contributor if group_id is None else Role.read
    try:
        organization = await organizations.get_as(
            conn, new.namespace, user_id=caller.user_id, needed=needed
        )
    except OrganizationNotFound:
        raise CannotCreateCollection(
            new.namespace, "it is neither you nor one of your organizations."
        ) from None
    if group_id is not None:
        role = await resource_groups.role_in(conn, organization, group_id, user_id=caller.user_id)
        if role is None or not role.covers(Role.contributor):
            raise CannotCreateCollection(
                new.namespace, "you cannot create anything in that resource group."
            )
    return organization


async def update(
    conn: Connection,
    caller: Caller,
    actor: Actor,
    collection: CollectionRecord,
    change: CollectionChange,
) -> CollectionRecord:
    """Change a collection; a new title gives it a new slug, and the old one still leads there."""
    await conn.lock(f"collections of {collection.owner_id}")
    collection, viewer = await _lock(conn, caller, collection)
    changed = _with_changes(collection, change)
    if changed.title != collection.title:
        await _check_title(conn, viewer, changed)
    differences = _differences(collection, changed)
    if differences:
        await store.update(conn, changed)
        await _record_change(conn, actor, changed, "collection.update", details=differences)
    names = tuple(differences)
    if change.position is not None and await _move(conn, viewer, changed, change.position):
        names = (*names, "position")
    if names:
        await _publish_update(conn, changed, caller, *names)
    return await _current(conn, collection)


def _with_changes(collection: CollectionRecord, change: CollectionChange) -> CollectionRecord:
    title = collection.title if change.title is None else change.title
    is_private = collection.is_private if change.is_private is None else change.is_private
    return replace(
        collection,
        title=title,
        slug=slug_of(title, otherwise="collection"),
        description=(collection.description if change.description is None else change.description),
        theme=change.theme or collection.theme,
        is_private=is_private,
    )


def _differences(before: CollectionRecord, after: CollectionRecord) -> dict[str, str | bool]:
    values: dict[str, tuple[str | bool, str | bool]] = {
        "title": (before.title, after.title),
        "description": (before.description, after.description),
        "theme": (before.theme, after.theme),
        "private": (before.is_private, after.is_private),
    }
    return {name: new for name, (old, new) in values.items() if old != new}


async def _move(
    conn: Connection, viewer: CollectionViewer, collection: CollectionRecord, position: int
) -> bool:
    seen = {
        each.id for each in await store.list_of_owner(conn, collection.owner_id, viewer.collections)
    }
    before = await store.order_of_owner(conn, collection.owner_id)
    order = [each for each, _ in before]
    after = items.moved(order, seen, collection.id, position=position)
    await store.set_positions(conn, items.changed_positions(before, after))
    return order != after


async def _publish_update(
    conn: Connection, collection: CollectionRecord, caller: Caller, *changed: str
) -> None:
    await publish(
        conn,
        CollectionUpdated(
            collection_id=collection.id,
            owner_id=collection.owner_id,
            changed=changed,
            actor_id=caller.user_id,
        ),
    )


async def _current(conn: Reader, collection: CollectionRecord) -> CollectionRecord:
    return await store.find(conn, collection.id) or collection


async def _record_change(
    conn: Connection,
    actor: Actor,
    collection: CollectionRecord,
    action: str,
    *,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write a line into the audit log of the organization that a collection belongs to."""
    if collection.owner.is_organization:
        await audit.record(
            conn, collection.owner_id, actor, action, target=collection.title,
            details={"slug": collection.full_slug, **(details or {})},
        )  # fmt: skip


async def delete(
    conn: Connection, caller: Caller, actor: Actor, collection: CollectionRecord
) -> None:
    """Delete a collection; hub administrators delete any that they see."""
    if not is_hub_administrator(caller):
        collection, _ = await _lock(conn, caller, collection)
    await store.remove(conn, collection.id)
    await publish(
        conn,
        CollectionDeleted(
            collection_id=collection.id, owner_id=collection.owner_id, actor_id=caller.user_id
        ),
    )
    await _record_change(conn, actor, collection, "collection.delete")


async def add_item(
    conn: Connection,
    caller: Caller,
    collection: CollectionRecord,
    address: ItemAddress,
    *,
    note: str,
) -> CollectionRecord:
    collection, viewer = await _lock(conn, caller, collection)
    await items.add(conn, caller, viewer, collection, address, note=note)
    await _publish_update(conn, collection, caller, "items")
    return await _current(conn, collection)


async def change_items(
    conn: Connection,
    caller: Caller,
    collection: CollectionRecord,
    changes: Sequence[ItemChange],
) -> CollectionRecord:
    """Change several items: all or none."""
    collection, viewer = await _lock(conn, caller, collection)
    await items.change(conn, viewer, collection, changes)
    await _publish_update(conn, collection, caller, "items")
    return await _current(conn, collection)


async def remove_item(
    conn: Connection, caller: Caller, collection: CollectionRecord, item_id: str
) -> None:
    collection, viewer = await _lock(conn, caller, collection)
    await items.remove(conn, viewer, collection, item_id)
    await _publish_update(conn, collection, caller, "items")


async def vote(
    conn: Connection, caller: Caller, collection: CollectionRecord, *, voted: bool
) -> CollectionRecord:
    """Vote for a collection that the caller sees, or take the vote back."""
    if not caller.may(Scope.write_discussions, on=collection.owner_id):
        raise ScopeNeeded([Scope.write_discussions])
    await conn.lock(f"collection {collection.id}")
    if await store.set_vote(conn, collection.id, user_id=caller.user_id, voted=voted):
        await _publish_update(conn, collection, caller, "upvotes")
    return await _current(conn, collection)


async def set_resource_group(
    conn: Connection,
    caller: Caller,
    actor: Actor,
    collection: CollectionRecord,
    group_id: str | None,
) -> CollectionRecord:
    """Put a collection into a resource group, or out of its group, as an administrator."""
    collection, _ = await _lock(conn, caller, collection)
    if not collection.owner.is_organization:
        raise InvalidCollection(
            "resourceGroupId: only the collections of an organization can be in a resource group."
        )
    name = collection.owner.name
    organization = await organizations.get_administered(conn, name, user_id=caller.user_id)
    group = None
    if group_id is not None:
        # Every plan may take a collection out of its group, not every plan may put one in.
        await resource_groups.get_organization(conn, name, user_id=caller.user_id)
        group = await resource_groups.get(conn, organization, group_id)
    if group_id == collection.resource_group_id:
        return collection
    changed = replace(collection, resource_group_id=group_id)
    await store.update(conn, changed)
    await _record_change(
        conn, actor, changed, "collection.resource-group",
        details={"resource_group": group.name if group else None},
    )  # fmt: skip
    await _publish_update(conn, changed, caller, "resourceGroup")
    return changed


async def list_changeable(
    conn: Reader, caller: Caller, target: ItemTarget
) -> list[tuple[CollectionRecord, str | None]]:
    """Return the collections that a caller may change, each with the item of a target if it has one."""
    viewer = await views.viewer_of(conn, caller)
    if viewer.collections is None:
        return []
    listed = [
        each
        for owner_id in viewer.collections.readable
        for each in await store.list_of_owner(conn, owner_id, viewer.collections)
        if await may_change(conn, caller, each)
    ]
    held = await items_store.holders_of(conn, target, [each.id for each in listed])
    return [(each, held.get(each.id)) for each in listed]
