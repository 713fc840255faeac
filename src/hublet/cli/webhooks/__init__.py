"""Commands for webhooks: what they watch, what became of what they sent, and trying them out."""

import typer

from hublet.cli.options import a_group
from hublet.cli.webhooks import deliveries, listening, managing, verifying


def register(app: typer.Typer) -> None:
    webhooks = a_group("Manage webhooks, follow their deliveries, try them on this machine.")
    for commands in (managing, deliveries, listening, verifying):
        commands.register(webhooks)
    app.add_typer(webhooks, name="webhooks")
