"""Arguments and options of the commands for webhooks, and their parsers."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

# Interface 2.3; the hub itself checks them too.
WATCHED_TYPES = ("model", "dataset", "space", "bucket", "kernel", "container", "user", "org")


class WatchedDomain(StrEnum):
    repo = "repo"
    discussion = "discussion"


def _complete_watched(incomplete: str) -> list[str]:
    return [f"{each}:" for each in WATCHED_TYPES if f"{each}:".startswith(incomplete)]


def _complete_id(incomplete: str) -> Iterator[tuple[str, str]]:
    """Complete the id of one of the user's webhooks, if the hub answers within a second."""
    from dataclasses import replace

    from hublet.cli.credentials import CredentialsError
    from hublet.cli.remote_command import choose_identity
    from hublet.client import ClientError
    from hublet.client.webhooks import Webhooks

    try:
        hub = replace(choose_identity().hub, timeout=1.0)
        for webhook in Webhooks(hub=hub).list():
            if webhook["id"].startswith(incomplete):
                yield webhook["id"], webhook.get("url", "a job")
    except (ClientError, CredentialsError, LookupError, TypeError):
        return


WebhookId = Annotated[
    str, typer.Argument(metavar="ID", help="The webhook's id.", autocompletion=_complete_id)
]
DeliveryId = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id.")]
Organization = Annotated[
    str | None,
    typer.Option("--org", metavar="NAME", help="Of this organization instead of your own."),
]
Watch = Annotated[
    list[str] | None,
    typer.Option(
        "--watch",
        metavar="TYPE:NAME",
        help=f"What to watch; may be repeated. Types: {', '.join(WATCHED_TYPES)}.",
        autocompletion=_complete_watched,
    ),
]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Where what happens is posted to.")
]
JobId = Annotated[
    str | None,
    typer.Option("--job-id", metavar="ID", help="The job to start again, instead of a URL."),
]
Domains = Annotated[
    list[WatchedDomain] | None,
    typer.Option(
        "--domain", metavar="DOMAIN", help="repo or discussion; may be repeated. Else both."
    ),
]
Secret = Annotated[
    str | None,
    typer.Option("--secret", metavar="TEXT", help="What deliveries are signed with."),
]
JobSecrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secrets",
        "-s",
        metavar="NAME[=VALUE]",
        help="For the job; may be repeated. A name alone is taken from the environment.",
    ),
]
SecretsFile = Annotated[
    Path | None,
    typer.Option("--secrets-file", metavar="FILE", help="Lines of NAME=VALUE, for the job."),
]


def parse_watched(items: list[str]) -> list[dict[str, str]]:
    return [_parse_watched_item(item) for item in items]


def _parse_watched_item(item: str) -> dict[str, str]:
    kind, _, name = item.partition(":")
    if kind not in WATCHED_TYPES or not name:
        raise typer.BadParameter(
            f"{item} is not of the form TYPE:NAME, as in model:ada/engine; the types are "
            f"{', '.join(WATCHED_TYPES)}.",
            param_hint="--watch",
        )
    return {"type": kind, "name": name}
