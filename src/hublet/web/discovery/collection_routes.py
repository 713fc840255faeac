"""HTTP for pages of collections: lists, one collection with its forms, and what a repository is in."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response

from hublet.accounts.records import Actor, Role
from hublet.accounts.users import store as users
from hublet.community.collections import service, store, views
from hublet.community.collections.records import (
    CollectionItemView,
    CollectionQuery,
    CollectionRecord,
    CollectionSort,
    CollectionView,
    ItemAddress,
    ItemTarget,
    ItemType,
    ListedCollection,
    Theme,
)
from hublet.community.collections.schemas import (
    AddItem,
    CreateCollection,
    UpdateCollection,
    UpdateItem,
)
from hublet.community.errors import NotYourCollection
from hublet.community.papers.records import PaperRecord
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest, NotFound
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import PAGE_REPO, PageRepo
from hublet.repos.records import Repo, Right
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.discovery.views import CollectionRow, RepoRow, collection_path, repo_row
from hublet.web.pages import REFUSALS, frame_for, go_to, next_page_url, read_as, render, status_of
from hublet.web.repo_head import PURPOSE, RepoTab, get_head, path_of

router = PageRouter()
# Beside the pages of repositories, whose addresses have the same beginning.
repo_router = PageRouter()

_PAGE_SIZE = 30
_NEW_PURPOSE = "new collection"
_PURPOSE = "collection"
_PATH = "/collections/{namespace}/{slug}"
_Text = Annotated[str, Query(max_length=200)]
SORTS = (("trending", "Trending"), ("lastModified", "Last change"), ("upvotes", "Upvotes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """An item on the page of its collection."""

    view: CollectionItemView
    title: str
    path: str
    row: RepoRow | None = None
    about: str = ""


def collection_row(view: CollectionView) -> CollectionRow:
    names = tuple(_item_row(item).title for item in view.items)
    return CollectionRow(collection=view.collection, names=names)


def _item_row(view: CollectionItemView) -> ItemRow:
    target = view.target
    if isinstance(target, Repo):
        return ItemRow(
            view=view, title=target.full_name, path=path_of(target), row=repo_row(target)
        )
    if isinstance(target, PaperRecord):
        about = f"Paper · {target.published_at:%Y-%m-%d}"
        path = f"/papers/{quote(target.id)}"
        return ItemRow(view=view, title=target.thread.title, path=path, about=about)
    return _listed_row(view, target)


def _listed_row(view: CollectionItemView, listed: ListedCollection) -> ItemRow:
    collection, count = listed.collection, listed.item_count
    return ItemRow(
        view=view,
        title=collection.title,
        path=collection_path(collection),
        about=f"Collection of {collection.owner.name} · {count} item{'' if count == 1 else 's'}",
    )


async def list_of_owner(
    conn: Reader, visit: PageVisit, owner_id: str, *, limit: int
) -> tuple[list[CollectionRow], int]:
    """Return the first collections of an owner that the viewer may see, and how many there are."""
    viewer = await views.viewer_of(conn, visit.caller)
    found = await store.list_of_owner(conn, owner_id, viewer.collections)
    shown = await views.view_list(conn, viewer, found[:limit])
    return [collection_row(each) for each in shown], len(found)


@router.get("/collections")
async def list_collections_page(
    visit: Visit,
    q: _Text = "",
    owner: _Text = "",
    sort: CollectionSort = CollectionSort.trending,
    cursor: _Text = "",
) -> Response:
    query = CollectionQuery(
        owners=(owner.strip(),) if owner.strip() else (),
        text=q.strip(),
        sort=sort,
        after=views.read_cursor(read_cursor(cursor) if cursor else ""),
        limit=_PAGE_SIZE + 1,
    )
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        viewer = await views.viewer_of(conn, visit.caller)
        found = await store.list_found(conn, viewer, query)
        shown = await views.view_list(conn, viewer, found[:_PAGE_SIZE])
    last = shown[-1].collection if len(found) > len(shown) else None
    return await render(
        visit,
        "discovery/collections.html",
        frame=frame,
        rows=[collection_row(each) for each in shown],
        query=query,
        owner=owner.strip(),
        sorts=SORTS,
        next_url=(
            next_page_url(visit, write_cursor(views.write_cursor(last, sort))) if last else None
        ),
    )


@router.get("/collections/new")
async def get_new_collection_page(visit: SignedInVisit, item: _Text = "") -> Response:
    return await _show_new(visit, {"item": item})


@router.post("/collections/new")
async def create_collection(visit: SignedInVisit, form: FormFields) -> Response:
    visit.check(form, _NEW_PURPOSE)
    private = {"public": False, "private": True}.get(form.get("visibility", ""))
    try:
        body = read_as(
            CreateCollection,
            title=form.get("title", ""),
            namespace=form.get("owner", ""),
            description=form.get("description", ""),
            **({} if private is None else {"private": private}),
            **_first_item(form.get("item", "")),
        )
        async with visit.database.transaction() as conn:
            created = await service.create(conn, visit.person, _actor(visit), body.new())
    except (*REFUSALS, NotFound) as error:
        return await _show_new(visit, dict(form), problem=error)
    return go_to(visit, collection_path(created), toast=f"{created.title} is there.")


def _first_item(text: str) -> dict[str, object]:
    """Return the item of a new collection, as in models/ada/engine."""
    plural, _, item_id = text.partition("/")
    return {"item": {"type": plural.removesuffix("s"), "id": item_id}} if item_id else {}


def _actor(visit: PageVisit) -> Actor:
    client = visit.request.client
    return Actor(
        id=visit.person.user_id,
        name=visit.person.user_name,
        address=client.host if client else None,
    )


async def _show_new(
    visit: PageVisit, typed: dict[str, str], *, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        memberships = await users.memberships_of(conn, user_id=visit.person.user_id)
    may = [each for each in memberships if each.role.covers(Role.contributor)]
    return await render(
        visit,
        "discovery/new_collection.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_NEW_PURPOSE),
        owners=[visit.person.user_name, *(each.organization.name for each in may)],
        typed=typed,
        problem=problem.message if problem else None,
    )


@router.get(_PATH)
async def get_collection_page(visit: Visit, namespace: str, slug: str) -> Response:
    return await _show(visit, namespace, slug)


async def _show(
    visit: PageVisit, namespace: str, slug: str, *, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        viewer = await views.viewer_of(conn, visit.caller)
        collection = await views.get(conn, viewer, namespace=namespace, slug=slug)
        view = await views.view(conn, visit.caller, viewer, collection)
        may_change = await service.may_change(conn, visit.caller, collection)
    return await render(
        visit,
        "discovery/collection.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        collection=collection,
        view=view,
        rows=[_item_row(item) for item in view.items],
        path=collection_path(collection),
        may_change=may_change,
        types=list(ItemType),
        themes=list(Theme),
        form_token=visit.form_token(f"{_PURPOSE} {collection.id}"),
        problem=problem.message if problem else None,
    )


_Change = Callable[[Connection, CollectionRecord], Awaitable[object]]


async def _change(  # noqa: PLR0913 - a form, its change, and where it leads
    visit: PageVisit,
    namespace: str,
    slug: str,
    form: FormFields,
    change: _Change,
    *,
    to: str | None = None,
    toast: str | None = None,
) -> Response:
    """Change a collection by a form of its page; what is refused is said there."""
    try:
        async with visit.database.transaction() as conn:
            viewer = await views.viewer_of(conn, visit.caller)
            collection = await views.get(conn, viewer, namespace=namespace, slug=slug)
            visit.check(form, f"{_PURPOSE} {collection.id}")
            await change(conn, collection)
    except InvalidRequest as error:
        return await _show(visit, namespace, slug, problem=error)
    return go_to(visit, to or collection_path(collection), toast=toast)


@router.post(f"{_PATH}/edit")
async def edit_collection(
    visit: SignedInVisit, namespace: str, slug: str, form: FormFields
) -> Response:
    async def edit(conn: Connection, collection: CollectionRecord) -> None:
        body = read_as(
            UpdateCollection,
            title=form.get("title", ""),
            description=form.get("description", ""),
            theme=form.get("theme") or collection.theme.value,
            private=form.get("visibility") == "private",
        )
        await service.update(conn, visit.person, _actor(visit), collection, body.change())

    return await _change(visit, namespace, slug, form, edit, toast="Changed.")


@router.post(f"{_PATH}/items")
async def add_item(visit: SignedInVisit, namespace: str, slug: str, form: FormFields) -> Response:
    async def add(conn: Connection, collection: CollectionRecord) -> None:
        # Strangers are told nothing about what they typed.
        if not await service.may_change(conn, visit.caller, collection):
            raise NotYourCollection(collection.full_slug)
        item = {"type": form.get("type", ""), "id": form.get("id", "").strip()}
        body = read_as(AddItem, item=item, note=form.get("note", ""))
        try:
            await service.add_item(
                conn, visit.person, collection, body.item.address(), note=body.note
            )
        except NotFound as error:
            # The collection is there: what was typed is wrong.
            raise InvalidRequest(error.message) from None

    return await _change(visit, namespace, slug, form, add)


@router.post(f"{_PATH}/items/{{item_id}}")
async def change_item(
    visit: SignedInVisit, namespace: str, slug: str, item_id: str, form: FormFields
) -> Response:
    """Set the note of an item, move it to a place, or take it out."""

    async def change(conn: Connection, collection: CollectionRecord) -> None:
        if form.get("remove") == "yes":
            await service.remove_item(conn, visit.person, collection, item_id)
            return
        place = form.get("position", "")
        values = {"position": int(place)} if place.isdecimal() else {"note": form.get("note", "")}
        body = read_as(UpdateItem, **values)
        await service.change_items(conn, visit.person, collection, [body.change(item_id)])

    return await _change(visit, namespace, slug, form, change)


@router.post(f"{_PATH}/upvote")
async def change_vote(
    visit: SignedInVisit, namespace: str, slug: str, form: FormFields
) -> Response:
    async def vote(conn: Connection, collection: CollectionRecord) -> None:
        await service.vote(conn, visit.person, collection, voted=form.get("vote") != "no")

    return await _change(visit, namespace, slug, form, vote)


@router.post(f"{_PATH}/delete")
async def delete_collection(
    visit: SignedInVisit, namespace: str, slug: str, form: FormFields
) -> Response:
    async def delete(conn: Connection, collection: CollectionRecord) -> None:
        await service.delete(conn, visit.person, _actor(visit), collection)

    toast = "The collection is deleted."
    return await _change(visit, namespace, slug, form, delete, to="/collections", toast=toast)


@repo_router.get(f"{PAGE_REPO}/collections")
async def get_repo_collections_page(visit: SignedInVisit, address: PageRepo) -> Response:
    """Show in which of the person's collections a repository is, to add it to others."""
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.card)
        target = ItemTarget(repo_id=head.repo.id)
        found = await service.list_changeable(conn, visit.person, target)
    return await render(
        visit,
        "discovery/repo_collections.html",
        frame=head.frame,
        head=head,
        rows=_choices(found),
        new_path=f"/collections/new?item={quote(f'{head.repo.type.plural}/{head.repo.full_name}')}",
    )


def _choices(
    found: Sequence[tuple[CollectionRecord, str | None]],
) -> list[tuple[CollectionRow, bool]]:
    return [(CollectionRow(collection=each), item_id is not None) for each, item_id in found]


@repo_router.post(f"{PAGE_REPO}/collections")
async def change_repo_collections(
    visit: SignedInVisit, address: PageRepo, form: FormFields
) -> Response:
    """Add a repository to a collection, or take it out."""
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.caller, address, Right.see)
        visit.check(form, f"{PURPOSE} {repo.id}")
        viewer = await views.viewer_of(conn, visit.caller)
        namespace, _, slug = form.get("collection", "").partition("/")
        collection = await views.get(conn, viewer, namespace=namespace, slug=slug)
        held = {
            each.id: item_id
            for each, item_id in await service.list_changeable(
                conn, visit.person, ItemTarget(repo_id=repo.id)
            )
        }
        if item_id := held.get(collection.id):
            await service.remove_item(conn, visit.person, collection, item_id)
        else:
            item = ItemAddress(type=ItemType(repo.type), id=repo.full_name)
            await service.add_item(conn, visit.person, collection, item, note="")
    return go_to(visit, f"{path_of(repo)}/collections")
