"""Commands for collections: list, show, create, change and delete them, and their items."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hublet.cli.options import Yes, new_group
from hublet.cli.output import CommandResult, Table
from hublet.cli.remote_command import add_remote_command, confirm, fail

if TYPE_CHECKING:
    from hublet.client import Hub

# The values of `community.collections.records`, written out: importing those would make help slower.
ItemTypeName = Literal[
    "model", "dataset", "space", "kernel", "bucket", "container", "paper", "collection"
]
ThemeName = Literal["orange", "blue", "green", "purple", "pink", "indigo"]
SortName = Literal["lastModified", "trending", "upvotes"]

_PATH = "/api/collections"
_EXAMPLE = "ada/wheels-6a5f0c2e9d1b4a7788990011"

_Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The collection, as the list names it.")]
_Title = Annotated[str, typer.Argument(metavar="TITLE", help="At most 60 characters.")]
_Description = Annotated[str | None, typer.Option(metavar="TEXT", help="At most 150 characters.")]
_Private = Annotated[
    bool | None, typer.Option("--private/--public", help="Who sees it: members, or everybody.")
]
_ItemId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The item: owner/name, the id of a paper, or the slug of a collection."
    ),
]


def register(app: typer.Typer) -> None:
    group = new_group("Collect models, datasets, papers and more.")
    add_remote_command(
        group, "list", list_collections, example="hublet collections list --owner ada"
    )
    add_remote_command(group, "info", info, example=f"hublet collections info {_EXAMPLE}")
    add_remote_command(
        group, "create", create, example='hublet collections create "Wheels" --private'
    )
    add_remote_command(
        group, "update", update, example=f"hublet collections update {_EXAMPLE} --theme pink"
    )
    add_remote_command(
        group, "add", add, example=f"hublet collections add {_EXAMPLE} model ada/engine"
    )
    add_remote_command(
        group, "remove", remove, example=f"hublet collections remove {_EXAMPLE} ada/engine"
    )
    add_remote_command(group, "delete", delete, example=f"hublet collections delete {_EXAMPLE}")
    app.add_typer(group, name="collections")


def list_collections(
    hub: "Hub",
    *,
    owner: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only those of this user or organization."),
    ] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(metavar="ITEM", help="Only those that hold it, as in models/ada/engine."),
    ] = None,
    search: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A part of the title or the description.")
    ] = None,
    sort: Annotated[SortName, typer.Option(help="The order.")] = "trending",
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", metavar="COUNT", min=1, max=10_000, help="At most so many."),
    ] = 30,
) -> Table:
    """List the collections that you may see."""
    query = {"owner": owner, "item": item, "q": search, "sort": sort, "limit": limit}
    found = list(islice(hub.pages(_PATH, query), limit))
    return Table(
        rows=[_row(each) for each in found],
        columns={"slug": "slug", "title": "title", "upvotes": "upvotes", "private": "private"},
        name="slug",
        empty="There are no such collections.",
        data=found,
    )


def _row(collection: dict[str, Any]) -> dict[str, object]:
    return {key: collection[key] for key in ("slug", "title", "upvotes", "private")}


def info(hub: "Hub", slug: _Slug) -> Table:
    """Show the items of a collection, in their order."""
    collection = _get(hub, slug)
    rows = [
        {
            "type": item["type"],
            "id": _name_of(item),
            "note": item.get("note", {}).get("text", ""),
        }
        for item in collection["items"]
    ]
    return Table(
        rows=rows,
        columns={"type": "type", "id": "id", "note": "note"},
        name="id",
        empty=f"{collection['title']} is empty.",
        data=[collection],
    )


def create(
    hub: "Hub",
    title: _Title,
    *,
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="You, or one of your organizations.")
    ] = None,
    description: _Description = None,
    private: _Private = None,
) -> CommandResult:
    """Create a collection and print its slug."""
    namespace = owner or hub.get("/api/whoami-v2")["name"]
    body = _given(title=title, namespace=namespace, description=description, private=private)
    created = hub.post(_PATH, body)
    return CommandResult(
        data=created, text=created["slug"], message=f"Created the collection {created['title']}."
    )


def update(
    hub: "Hub",
    slug: _Slug,
    *,
    title: Annotated[str | None, typer.Option(metavar="TITLE", help="The new title.")] = None,
    description: _Description = None,
    theme: Annotated[ThemeName | None, typer.Option(help="The color of its page.")] = None,
    private: _Private = None,
    position: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=0, help="Its place, from 0.")
    ] = None,
) -> CommandResult:
    """Change a collection and print its slug, which follows the title."""
    body = _given(
        title=title, description=description, theme=theme, private=private, position=position
    )
    if not body:
        fail("Say what to change: --title, --description, --theme, --private or --position.")
    changed = hub.patch(_address(slug), body)["data"]
    return CommandResult(data=changed, text=changed["slug"], message="Changed.")


def add(
    hub: "Hub",
    slug: _Slug,
    item_type: Annotated[ItemTypeName, typer.Argument(metavar="TYPE", help="What it is.")],
    item_id: _ItemId,
    *,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="At most 500 characters.")
    ] = None,
) -> CommandResult:
    """Add an item behind all others."""
    body = _given(item={"type": item_type, "id": item_id}, note=note)
    changed = hub.post(f"{_address(slug)}/items", body)
    return CommandResult(data=changed, message=f"{changed['title']} holds {item_id}.")


def remove(hub: "Hub", slug: _Slug, item_id: _ItemId) -> CommandResult:
    """Take an item out of a collection."""
    collection = _get(hub, slug)
    found = [item for item in collection["items"] if item_id in {_name_of(item), item["_id"]}]
    if not found:
        fail(f"{collection['title']} holds no {item_id}.")
    for item in found:
        hub.delete(f"{_address(slug)}/items/{item['_id']}")
    return CommandResult(data={}, message=f"{collection['title']} holds {item_id} no more.")


def delete(hub: "Hub", slug: _Slug, *, yes: Yes = False) -> CommandResult:
    """Delete a collection; what it holds stays."""
    confirm(f"Delete the collection {slug}?", yes=yes)
    hub.delete(_address(slug))
    return CommandResult(data={}, message=f"Deleted the collection {slug}.")


def _get(hub: "Hub", slug: str) -> dict[str, Any]:
    collection: dict[str, Any] = hub.get(_address(slug))
    return collection


def _name_of(item: dict[str, Any]) -> str:
    return str(item["slug"] if item["type"] == "collection" else item["id"])


def _address(slug: str) -> str:
    from hublet.client.hub import path_of

    namespace, _, name = slug.partition("/")
    if not name:
        fail(f"{slug} is no slug: it has the form {_EXAMPLE}.")
    return path_of(f"{_PATH}/{{namespace}}/{{name}}", namespace=namespace, name=name)


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
