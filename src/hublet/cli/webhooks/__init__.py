"""Commands for webhooks: manage them, follow their deliveries, try them on this machine."""

import typer

from hublet.cli.options import new_group
from hublet.cli.webhooks import deliveries, listen, manage, verify


def register(app: typer.Typer) -> None:
    webhooks = new_group("Manage webhooks, follow their deliveries, try them on this machine.")
    manage.register(webhooks)
    deliveries.register(webhooks)
    listen.register(webhooks)
    verify.register(webhooks)
    app.add_typer(webhooks, name="webhooks")
