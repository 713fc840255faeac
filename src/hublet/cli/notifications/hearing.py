"""The command that shows what reaches the inbox, as it happens."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import typer

from hublet.cli.asking import asking
from hublet.cli.notifications.items import row
from hublet.cli.output import Answer, aligned, cell, say

if TYPE_CHECKING:
    from hublet.client import Hub

_SHOWN = ("updatedAt", "where", "title")


def register(group: typer.Typer) -> None:
    asking(group, "listen", listen, example="hublet notifications listen")


def listen(hub: "Hub") -> Generator[Answer]:
    """Show what reaches the inbox, as it happens, until Ctrl-C."""
    from hublet.client.notifications import Inbox

    heard = Inbox(hub=hub).follow(
        begun=lambda: say("Listening; Ctrl-C ends it."),
        lost=lambda reason: say(f"The hub is gone ({reason}); waiting for it to come back."),
    )
    for event in heard:
        if event.name == "notification":
            item = event.read()
            shown = row(item)
            [line] = aligned([[cell(shown[name]) for name in _SHOWN]], width=None)
            yield Answer(data=item, text=line)
