"""Rules of items: what may become one, which a reader sees, their notes and their order."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from hublet.community.collections import items_store, store
from hublet.community.collections.records import (
    MOST_ITEMS,
    CollectionItemView,
    CollectionRecord,
    CollectionViewer,
    ItemAddress,
    ItemChange,
    ItemRecord,
    ItemTarget,
    ItemType,
    ListedCollection,
)
from hublet.community.errors import InvalidCollection, ItemExists, ItemNotFound
from hublet.community.papers import store as papers
from hublet.community.papers.records import PaperRecord
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.errors import NotFound
from hublet.core.ids import is_object_id, new_object_id
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.browse import store as lists_store
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.tokens.records import Caller


def split_slug(slug: str) -> tuple[str, str]:
    """Return what stands before the id in a slug, and the id; it is empty in a short slug."""
    text, _, last = slug.rpartition("-")
    return (text, last) if is_object_id(last) else (slug, "")


def moved(order: Sequence[str], seen: Collection[str], one: str, *, position: int) -> list[str]:
    """Return an order after a move to a position among those that the caller sees."""
    others = [each for each in order if each != one]
    visible = [each for each in others if each in seen]
    at = others.index(visible[position]) if position < len(visible) else len(others)
    return [*others[:at], one, *others[at:]]


def changed_positions(
    before: Sequence[tuple[str, int]], order: Sequence[str]
) -> list[tuple[str, int]]:
    """Return the ids whose position is another one in an order without gaps, with that position."""
    old = dict(before)
    return [(each, place) for place, each in enumerate(order) if old[each] != place]


async def find_target(
    conn: Reader, caller: Caller | None, viewer: CollectionViewer, address: ItemAddress
) -> ItemTarget | None:
    """Return what an address names; None when there is no such thing, or the caller cannot see it."""
    if address.type is ItemType.paper:
        paper = await papers.find(conn, address.id)
        return ItemTarget(thread_id=paper.thread.id) if paper else None
    if address.type is ItemType.collection:
        _, collection_id = split_slug(f"-{address.id}")
        found = await store.list_visible(conn, [collection_id], viewer.collections)
        return ItemTarget(listed_id=found[0].id) if found else None
    namespace, _, name = address.id.partition("/")
    named = RepoAddress(type=RepoType(address.type), namespace=namespace, name=name)
    with suppress(NotFound):
        return ItemTarget(repo_id=(await repos.get(conn, caller, named, Right.see)).id)
    return None


async def add(
    conn: Connection,
    caller: Caller,
    viewer: CollectionViewer,
    collection: CollectionRecord,
    address: ItemAddress,
    *,
    note: str = "",
) -> None:
    """Add an item behind all others of a locked collection."""
    target = await find_target(conn, caller, viewer, address)
    if target is None:
        raise ItemNotFound(address.phrase)
    if target.listed_id == collection.id:
        raise InvalidCollection("item: a collection cannot hold itself.")
    order = await items_store.order_of(conn, collection.id)
    if len(order) >= MOST_ITEMS:
        raise InvalidCollection(f"item: a collection holds at most {MOST_ITEMS} items.")
    item = ItemRecord(
        id=new_object_id(),
        collection_id=collection.id,
        target=target,
        position=order[-1][1] + 1 if order else 0,
        note=note,
        added_by=caller.user_id,
        added_at=now(),
    )
    if not await items_store.add(conn, item):
        raise ItemExists(address.phrase, collection.full_slug)
    await store.touch(conn, collection.id)


async def change(
    conn: Connection,
    viewer: CollectionViewer,
    collection: CollectionRecord,
    changes: Sequence[ItemChange],
) -> None:
    """Change notes and order of items of a locked collection, one after the other: all or none."""
    seen = await _seen_ids(conn, viewer, collection)
    for each in changes:
        if each.item_id not in seen:
            raise ItemNotFound(f"item {each.item_id} in the collection {collection.full_slug}")
        await items_store.update(conn, each.item_id, note=each.note, gallery=each.gallery)
        if each.position is not None:
            before = await items_store.order_of(conn, collection.id)
            order = [item_id for item_id, _ in before]
            after = moved(order, seen, each.item_id, position=each.position)
            await items_store.set_positions(conn, changed_positions(before, after))
    await store.touch(conn, collection.id)


async def remove(
    conn: Connection, viewer: CollectionViewer, collection: CollectionRecord, item_id: str
) -> None:
    if item_id not in await _seen_ids(conn, viewer, collection):
        raise ItemNotFound(f"item {item_id} in the collection {collection.full_slug}")
    await items_store.remove(conn, item_id)
    await store.touch(conn, collection.id)


async def _seen_ids(
    conn: Reader, viewer: CollectionViewer, collection: CollectionRecord
) -> set[str]:
    seen = await items_store.list_of(conn, [collection.id], viewer, most=MOST_ITEMS)
    return {item.id for item in seen}


async def load(
    conn: Reader, viewer: CollectionViewer, collection_ids: Collection[str], *, most: int
) -> dict[str, tuple[CollectionItemView, ...]]:
    """Return the first items of each collection that a reader may see, with what they point to."""
    found = await items_store.list_of(conn, collection_ids, viewer, most=most)
    targets = await _targets(conn, viewer, [item.target for item in found])
    liked = await _liked(conn, viewer, targets.values())
    shown: dict[str, list[CollectionItemView]] = {each: [] for each in collection_ids}
    for item in found:
        # What was hidden or deleted a moment ago is not there.
        if (target := targets.get(_id_of(item.target))) is None:
            continue
        of_collection = shown[item.collection_id]
        of_collection.append(
            CollectionItemView(
                record=item,
                type=_type_of(target),
                position=len(of_collection),
                target=target,
                is_liked=_id_of(item.target) in liked,
            )
        )
    return {each: tuple(items) for each, items in shown.items()}


def _id_of(target: ItemTarget) -> str:
    return target.repo_id or target.thread_id or target.listed_id or ""


def _type_of(target: Repo | PaperRecord | ListedCollection) -> ItemType:
    if isinstance(target, Repo):
        return ItemType(target.type)
    return ItemType.paper if isinstance(target, PaperRecord) else ItemType.collection


async def _targets(
    conn: Reader, viewer: CollectionViewer, targets: Sequence[ItemTarget]
) -> dict[str, Repo | PaperRecord | ListedCollection]:
    repo_ids = {target.repo_id for target in targets if target.repo_id}
    thread_ids = {target.thread_id for target in targets if target.thread_id}
    listed_ids = {target.listed_id for target in targets if target.listed_id}
    found: dict[str, Repo | PaperRecord | ListedCollection] = {}
    if repo_ids:
        visible = await lists_store.list_visible(conn, repo_ids, viewer.repos)
        found |= {repo.id: repo for repo in visible}
    if thread_ids:
        listed = await papers.list_by_threads(conn, thread_ids)
        found |= {paper.thread.id: paper for paper in listed}
    if listed_ids:
        counts = await items_store.count_of(conn, listed_ids, viewer)
        for each in await store.list_visible(conn, listed_ids, viewer.collections):
            found[each.id] = ListedCollection(collection=each, item_count=counts.get(each.id, 0))
    return found


async def _liked(
    conn: Reader,
    viewer: CollectionViewer,
    targets: Iterable[Repo | PaperRecord | ListedCollection],
) -> set[str]:
    repo_ids = [target.id for target in targets if isinstance(target, Repo)]
    if viewer.user_id is None or not repo_ids:
        return set()
    return await repos_store.liked_by(conn, viewer.user_id, repo_ids)
