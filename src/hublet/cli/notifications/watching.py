"""Commands for what is watched and what is muted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hublet.cli.asking import asking
from hublet.cli.output import Table

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.notifications import Entry, Inbox, Target

# Repositories of the other types have no discussions to hear of.
_REPOS = ("model", "dataset", "space")
_WATCHED = (*_REPOS, "user", "org")
_ID_LENGTH = 24

_Remove = Annotated[bool, typer.Option("--remove", help="No longer, instead of from now on.")]


def register(group: typer.Typer) -> None:
    asking(group, "watch", watch, example="hublet notifications watch model:ada/engine org:acme")
    asking(group, "mute", mute, example="hublet notifications mute model:ada/engine")


def watch(
    hub: "Hub",
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="TYPE:NAME", help=f"Types: {', '.join(_WATCHED)}."),
    ] = None,
    *,
    remove: _Remove = False,
) -> Table:
    """Hear of everything that is discussed there; without a name, list what is watched."""
    from hublet.client.notifications import Inbox

    inbox = Inbox(hub=hub)
    targets = [_named(inbox, item, _WATCHED) for item in items or []]
    return _table(_changed(inbox, "watch", targets, remove=remove), "Nothing is watched.")


def mute(
    hub: "Hub",
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TYPE:NAME",
            help=f"Repositories ({', '.join(_REPOS)}), or the ids of items in the inbox.",
        ),
    ] = None,
    *,
    remove: _Remove = False,
) -> Table:
    """Hear no more of a repository or a thread; without a name, list what is muted."""
    from hublet.client.notifications import Inbox

    inbox = Inbox(hub=hub)
    targets = [_thread(item) or _named(inbox, item, _REPOS) for item in items or []]
    return _table(_changed(inbox, "mute", targets, remove=remove), "Nothing is muted.")


def _changed(
    inbox: "Inbox", verb: Literal["watch", "mute"], targets: Sequence["Target"], *, remove: bool
) -> Sequence["Entry"]:
    if not targets:
        if remove:
            raise typer.BadParameter("Say what to remove.", param_hint="--remove")
        return inbox.entries(verb)
    return inbox.change(verb, delete=targets) if remove else inbox.change(verb, add=targets)


def _named(inbox: "Inbox", item: str, types: Sequence[str]) -> "Target":
    kind, _, name = item.partition(":")
    if kind not in types or not name or (kind in _REPOS and "/" not in name):
        raise typer.BadParameter(
            f"{item} is not of the form TYPE:NAME, as in model:ada/engine; the types are "
            f"{', '.join(types)}."
        )
    return inbox.target(kind, name)


def _thread(item: str) -> "Target | None":
    return {"id": item, "type": "thread"} if len(item) == _ID_LENGTH and item.isalnum() else None


def _table(entries: Sequence["Entry"], empty: str) -> Table:
    rows = [
        {"id": entry["id"], "type": entry.get("repoType", entry["type"]), "name": entry["name"]}
        for entry in entries
    ]
    return Table(
        rows=rows,
        columns={"type": "type", "name": "name", "id": "id"},
        name="id",
        empty=empty,
        data=entries,
    )
