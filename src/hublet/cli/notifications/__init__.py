"""Commands for the inbox: what is in it, what reaches it, and what becomes of it."""

import typer

from hublet.cli.notifications import choosing, hearing, inbox, watching
from hublet.cli.options import a_group


def register(app: typer.Typer) -> None:
    notifications = a_group("Read the inbox, and choose what reaches it.")
    for commands in (inbox, hearing, watching, choosing):
        commands.register(notifications)
    app.add_typer(notifications, name="notifications")
