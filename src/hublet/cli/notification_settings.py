"""Commands for notification settings: what is watched, muted, and switched on or off."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hublet.cli.output import Table
from hublet.cli.remote_command import add_remote_command

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.notifications import Inbox, WatchEntry, WatchTarget

# Repositories of the other types have no discussions.
_REPO_TYPES = ("model", "dataset", "space")
_WATCHED_TYPES = (*_REPO_TYPES, "user", "org")
_ID_LENGTH = 24
# As in addresses: a name alone is a model's.
_PREFIXES = {f"{type_}s": type_ for type_ in _REPO_TYPES}
_OWNER = "owner"

_Remove = Annotated[bool, typer.Option("--remove", help="No longer, instead of from now on.")]
_SWITCHES = {"on": True, "off": False}


def register(group: typer.Typer) -> None:
    add_remote_command(
        group,
        "watch",
        watch,
        example="hublet notifications watch ada/engine datasets/ada/tables acme",
    )
    add_remote_command(group, "mute", mute, example="hublet notifications mute ada/engine")
    add_remote_command(
        group, "settings", settings, example="hublet notifications settings job_status=off"
    )


def watch(
    hub: "Hub",
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="A user, an organization, or a repository as in its address; or TYPE:NAME, with "
            f"{', '.join(_WATCHED_TYPES)}.",
        ),
    ] = None,
    *,
    remove: _Remove = False,
) -> Table:
    """Hear of everything that is discussed there; without a name, list what is watched."""
    from hublet.client.notifications import Inbox

    inbox = Inbox(hub=hub)
    targets = [_find_target(inbox, item, _WATCHED_TYPES) for item in items or []]
    return _table(_change_entries(inbox, "watch", targets, remove=remove), "Nothing is watched.")


def mute(
    hub: "Hub",
    items: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Repositories as in their addresses, or the ids of items in the inbox.",
        ),
    ] = None,
    *,
    remove: _Remove = False,
) -> Table:
    """Hear no more of a repository or a thread; without a name, list what is muted."""
    from hublet.client.notifications import Inbox

    inbox = Inbox(hub=hub)
    targets = [
        _thread_target(item) or _find_target(inbox, item, _REPO_TYPES) for item in items or []
    ]
    return _table(_change_entries(inbox, "mute", targets, remove=remove), "Nothing is muted.")


def settings(
    hub: "Hub",
    choices: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=on|off", help="What to change.")
    ] = None,
) -> Table:
    """Show what you hear of, after changing what is named. `web_…` is the inbox, the rest mail."""
    from hublet.client.notifications import Inbox

    inbox = Inbox(hub=hub)
    changes = dict(_parse_choice(each) for each in choices or [])
    current = inbox.set(changes) if changes else inbox.settings()
    rows = [
        {"name": name, "value": value if isinstance(value, str) else _format_switch(value)}
        for name, value in current.items()
    ]
    return Table(
        rows=rows,
        columns={"name": "name", "value": "value"},
        name="name",
        empty="There are no settings.",
        data=[current],
    )


def _change_entries(
    inbox: "Inbox",
    verb: Literal["watch", "mute"],
    targets: Sequence["WatchTarget"],
    *,
    remove: bool,
) -> Sequence["WatchEntry"]:
    if not targets:
        if remove:
            raise typer.BadParameter("Say what to remove.", param_hint="--remove")
        return inbox.entries(verb)
    return inbox.change(verb, delete=targets) if remove else inbox.change(verb, add=targets)


def _find_target(inbox: "Inbox", item: str, types: Sequence[str]) -> "WatchTarget":
    kind, name = _kind_and_name(item)
    if kind == _OWNER and "user" in types and name:
        return inbox.owner_target(name)
    if kind not in types or not name or (kind in _REPO_TYPES and "/" not in name):
        raise typer.BadParameter(
            f"{item} names nothing that can be found: write ada, ada/engine or datasets/ada/tables, "
            f"or TYPE:NAME as in model:ada/engine; the types are {', '.join(types)}."
        )
    return inbox.target(kind, name)


def _kind_and_name(item: str) -> tuple[str, str]:
    kind, colon, name = item.partition(":")
    if colon:
        return kind, name
    prefix, _, rest = item.partition("/")
    if "/" in rest:
        return _PREFIXES.get(prefix, prefix), rest
    return ("model" if rest else _OWNER), item


def _thread_target(item: str) -> "WatchTarget | None":
    return {"id": item, "type": "thread"} if len(item) == _ID_LENGTH and item.isalnum() else None


def _table(entries: Sequence["WatchEntry"], empty: str) -> Table:
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


def _parse_choice(text: str) -> tuple[str, bool | str]:
    name, equals, value = text.partition("=")
    # One setting is a time; the hub knows which, and refuses other values.
    if not (name and equals and value):
        raise typer.BadParameter(f"{text} is not of the form NAME=on or NAME=off.")
    return name, _SWITCHES.get(value.lower(), value)


def _format_switch(value: object) -> str:
    return "on" if value else "off"
