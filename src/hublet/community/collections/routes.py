"""HTTP routes for collections, their items, votes and resource groups."""

from typing import Annotated

from fastapi import Depends, Query, Request
from starlette.responses import Response

from hublet.accounts.organizations.store import find_accounts
from hublet.community.collections import items, service, store, views
from hublet.community.collections.records import (
    CollectionQuery,
    CollectionRecord,
    CollectionSort,
    CollectionView,
    CollectionViewer,
    ItemAddress,
    ItemTarget,
    ItemType,
    ListedCollection,
)
from hublet.community.collections.schemas import (
    AddItem,
    BriefCollection,
    CollectionEnvelope,
    CollectionInfo,
    CollectionTaken,
    CreateCollection,
    GroupedCollection,
    ItemUpdates,
    ListedCollectionInfo,
    SetCollectionResourceGroup,
    UpdateCollection,
    UpdateItem,
)
from hublet.community.errors import InvalidCollection, ItemNotFound
from hublet.community.papers.schemas import Upvotes
from hublet.community.threads.records import Accounts
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, Page
from hublet.core.paging import MAX_LIMIT, read_cursor
from hublet.core.schema import Done
from hublet.repos.schemas import RepoResourceGroup
from hublet.tokens.auth import (
    AnyCaller,
    CollectionWriter,
    DiscussionWriter,
    MaybeCaller,
    actor_of,
)
from hublet.tokens.records import Caller

_PATH = "/api/collections/{namespace}/{slug}"
_MOST_FILTERS = 100
# The public service allows so many; more than a page of ours comes in several.
_MAX_LIMIT = 10_000
_DEFAULT_LIMIT = 10

router = Router(tags=["collections"])


async def _collection_to_read(
    conn: ReadConn, caller: MaybeCaller, namespace: str, slug: str
) -> CollectionRecord:
    viewer = await views.viewer_of(conn, caller)
    return await views.get(conn, viewer, namespace=namespace, slug=slug)


async def _collection_to_change(
    conn: Conn, caller: AnyCaller, namespace: str, slug: str
) -> CollectionRecord:
    viewer = await views.viewer_of(conn, caller)
    return await views.get(conn, viewer, namespace=namespace, slug=slug)


_ToRead = Annotated[CollectionRecord, Depends(_collection_to_read)]
_ToChange = Annotated[CollectionRecord, Depends(_collection_to_change)]


async def _page(
    request: Request,
    response: Response,
    limit: Annotated[
        int, Query(ge=1, le=_MAX_LIMIT, description="A page has at most 100 of them.")
    ] = _DEFAULT_LIMIT,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(after=after, limit=min(limit, MAX_LIMIT), _request=request, _response=response)


async def _query(  # noqa: PLR0913 - these are the parameters of the public clients
    conn: ReadConn,
    caller: MaybeCaller,
    page: Annotated[Page, Depends(_page)],
    *,
    owner: Annotated[
        list[str] | None,
        Query(max_length=_MOST_FILTERS, description="Only those of these users and organizations."),
    ] = None,
    item: Annotated[
        list[str] | None,
        Query(
            max_length=_MOST_FILTERS,
            description="Only those that hold one of these, as in models/ada/engine.",
        ),
    ] = None,
    q: Annotated[
        str, Query(max_length=200, description="A part of the title or the description.")
    ] = "",
    sort: CollectionSort = CollectionSort.trending,
) -> CollectionQuery:
    return CollectionQuery(
        owners=tuple(owner or ()),
        items=None if item is None else await _targets(conn, caller, item),
        text=q.strip(),
        sort=sort,
        after=views.read_cursor(page.after),
        limit=page.reach,
    )


async def _targets(conn: Reader, caller: Caller | None, names: list[str]) -> tuple[ItemTarget, ...]:
    viewer = await views.viewer_of(conn, caller)
    addresses = [_item_address(name) for name in names]
    found = [await items.find_target(conn, caller, viewer, address) for address in addresses]
    return tuple(target for target in found if target is not None)


def _item_address(name: str) -> ItemAddress:
    plural, _, item_id = name.partition("/")
    types = {type_.plural: type_ for type_ in ItemType}
    if plural not in types or not item_id:
        raise InvalidCollection(
            f"item: {name} must be a type and a name, as in models/ada/engine or papers/2401.12345."
        )
    return ItemAddress(type=types[plural], id=item_id)


@router.get("/api/collections", responses=PAGED_RESPONSES)
async def list_collections(
    conn: ReadConn,
    caller: MaybeCaller,
    page: Annotated[Page, Depends(_page)],
    query: Annotated[CollectionQuery, Depends(_query)],
    *,
    expand: Annotated[bool, Query(description="False: names and votes only.")] = True,
) -> list[ListedCollectionInfo] | list[BriefCollection]:
    """List the collections that the caller may see, each with its first four items."""
    viewer = await views.viewer_of(conn, caller)
    found = page.cut(
        await store.list_found(conn, viewer, query),
        position=lambda each: views.write_cursor(each, query.sort),
    )
    if not expand:
        return [BriefCollection.of(each) for each in found]
    shown = await views.view_list(conn, viewer, found)
    accounts = await _accounts(conn, *shown)
    base_url = conn.hub.settings.base_url
    return [ListedCollectionInfo.of(each, accounts, base_url=base_url) for each in shown]


@router.post(
    "/api/collections",
    responses={
        404: {"description": "There is no such item or resource group, or you cannot see it."},
        409: {
            "model": CollectionTaken,
            "description": "There is a collection of this title, with the slug in the body.",
        },
    },
)
async def create_collection(
    request: Request, conn: Conn, caller: CollectionWriter, body: CreateCollection
) -> CollectionInfo:
    """Create a collection of the caller, or of an organization where they may create things."""
    created = await service.create(conn, caller, actor_of(request, caller), body.new())
    return await _render(conn, caller, created)


@router.get(_PATH)
async def get_collection(
    conn: ReadConn, caller: MaybeCaller, collection: _ToRead
) -> CollectionInfo:
    """Get a collection with the items that the caller may see."""
    return await _render(conn, caller, collection)


@router.patch(
    _PATH,
    responses={409: {"model": CollectionTaken, "description": "The title is taken."}},
)
async def update_collection(
    request: Request,
    conn: Conn,
    caller: CollectionWriter,
    collection: _ToChange,
    body: UpdateCollection,
) -> CollectionEnvelope:
    """Change a collection; a new title gives it a new slug, and the old one still leads here."""
    actor = actor_of(request, caller)
    changed = await service.update(conn, caller, actor, collection, body.change())
    return CollectionEnvelope(data=await _render(conn, caller, changed))


@router.delete(_PATH)
async def delete_collection(
    request: Request, conn: Conn, caller: CollectionWriter, collection: _ToChange
) -> Done:
    """Delete a collection; what it holds stays."""
    await service.delete(conn, caller, actor_of(request, caller), collection)
    return Done()


@router.post(f"{_PATH}/items", responses={409: {"description": "The collection holds it already."}})
async def add_collection_item(
    conn: Conn, caller: CollectionWriter, collection: _ToChange, body: AddItem
) -> CollectionInfo:
    """Add a repository, a paper or another collection behind all items."""
    changed = await service.add_item(conn, caller, collection, body.item.address(), note=body.note)
    return await _render(conn, caller, changed)


@router.post(f"{_PATH}/items/batch")
async def update_collection_items(
    conn: Conn, caller: CollectionWriter, collection: _ToChange, body: ItemUpdates
) -> CollectionInfo:
    """Change several items, one after the other: all or none."""
    changes = [each.data.change(each.id) for each in body]
    changed = await service.change_items(conn, caller, collection, changes)
    return await _render(conn, caller, changed)


@router.patch(f"{_PATH}/items/{{item_id}}")
async def update_collection_item(
    conn: Conn, caller: CollectionWriter, collection: _ToChange, item_id: str, body: UpdateItem
) -> CollectionInfo:
    """Change the note of an item, or move it to another place."""
    changed = await service.change_items(conn, caller, collection, [body.change(item_id)])
    return await _render(conn, caller, changed)


@router.delete(f"{_PATH}/items/{{item_id}}")
async def delete_collection_item(
    conn: Conn, caller: CollectionWriter, collection: _ToChange, item_id: str
) -> Done:
    """Take an item out of a collection."""
    await service.remove_item(conn, caller, collection, item_id)
    return Done()


@router.post(f"{_PATH}/upvote")
async def upvote_collection(conn: Conn, caller: DiscussionWriter, collection: _ToChange) -> Upvotes:
    """Vote for a collection; doing it again changes nothing."""
    voted = await service.vote(conn, caller, collection, voted=True)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=True)


@router.delete(f"{_PATH}/upvote")
async def take_back_collection_upvote(
    conn: Conn, caller: DiscussionWriter, collection: _ToChange
) -> Upvotes:
    """Take back one's vote for a collection; doing it again changes nothing."""
    voted = await service.vote(conn, caller, collection, voted=False)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=False)


@router.get(f"{_PATH}/resource-group")
async def get_collection_resource_group(
    conn: ReadConn, caller: AnyCaller, collection: _ToRead
) -> RepoResourceGroup:
    """Get the resource group of a collection, as one of its members or an administrator."""
    group = await views.find_resource_group(conn, caller, collection)
    if group is None:
        raise ItemNotFound(f"resource group of the collection {collection.full_slug}")
    return RepoResourceGroup(id=group.id, name=group.name)


@router.post(f"{_PATH}/resource-group")
async def set_collection_resource_group(
    request: Request,
    conn: Conn,
    caller: CollectionWriter,
    collection: _ToChange,
    body: SetCollectionResourceGroup,
) -> GroupedCollection:
    """Put a collection into a resource group, or out of its group, as an administrator."""
    changed = await service.set_resource_group(
        conn, caller, actor_of(request, caller), collection, body.resourceGroupId
    )
    return GroupedCollection.of(changed)


async def _render(
    conn: Reader, caller: Caller | None, collection: CollectionRecord
) -> CollectionInfo:
    viewer: CollectionViewer = await views.viewer_of(conn, caller)
    view = await views.view(conn, caller, viewer, collection)
    accounts = await _accounts(conn, view)
    return CollectionInfo.of(view, accounts, base_url=conn.hub.settings.base_url)


async def _accounts(conn: Reader, *shown: CollectionView) -> Accounts:
    listed = [
        item.target.collection
        for view in shown
        for item in view.items
        if isinstance(item.target, ListedCollection)
    ]
    owners = [*(view.collection for view in shown), *listed]
    return await find_accounts(conn, {collection.owner_id for collection in owners})
