"""The command for what one wants to hear of."""

from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.asking import asking
from hublet.cli.output import Table

if TYPE_CHECKING:
    from hublet.client import Hub

_WORDS = {"on": True, "off": False}


def register(group: typer.Typer) -> None:
    asking(group, "settings", settings, example="hublet notifications settings job_status=off")


def settings(
    hub: "Hub",
    choices: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=on|off", help="What to change.")
    ] = None,
) -> Table:
    """Show what you hear of, after changing what is named. `web_…` is the inbox, the rest mail."""
    from hublet.client.notifications import Inbox

    inbox = Inbox(hub=hub)
    wanted = dict(_choice(each) for each in choices or [])
    shown = inbox.set(wanted) if wanted else inbox.settings()
    rows = [
        {"name": name, "value": value if isinstance(value, str) else _word(value)}
        for name, value in shown.items()
    ]
    return Table(
        rows=rows,
        columns={"name": "name", "value": "value"},
        name="name",
        empty="There are no settings.",
        data=[shown],
    )


def _choice(text: str) -> tuple[str, bool | str]:
    name, equals, value = text.partition("=")
    # One is a time; the hub knows which, and what else it does not take.
    if not (name and equals and value):
        raise typer.BadParameter(f"{text} is not of the form NAME=on or NAME=off.")
    return name, _WORDS.get(value.lower(), value)


def _word(value: object) -> str:
    return "on" if value else "off"
