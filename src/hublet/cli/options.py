"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hublet.core.config import Settings

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="The data folder (HUBLET_DATA_DIR; default hublet-data)."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option("--database-url", help="postgresql://… instead of SQLite in the data folder."),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="A TOML file with settings (see docs/operating.md).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the name or id of each.")]

Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="The hub (HUBLET_ENDPOINT or HF_ENDPOINT; else that of the last login).",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        help="Who asks (HUBLET_TOKEN or HF_TOKEN for a hub that is named; else the login).",
    ),
]
Silent = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only what a script wants, and no words.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask again.")]

# Typer loads pydantic to read a flag that was not given, unless its value stands here: then
# help and version do without. The last two are flags that typer adds.
NOT_GIVEN = {"default_map": dict.fromkeys(("help", "install_completion", "show_completion"), False)}


def a_group(words: str) -> typer.Typer:
    """Return a command that only has commands under it."""
    return typer.Typer(help=words, no_args_is_help=True, context_settings=NOT_GIVEN)


def settings_from(
    *,
    data_dir: Path | None = None,
    database_url: str | None = None,
    config: Path | None = None,
    **more: object,
) -> "Settings":
    """Load the settings with these flags on top; further flags are named like `server__port`."""
    from hublet.core.config import load

    flags: dict[str, object] = {name.replace("__", "."): value for name, value in more.items()}
    return load(
        {"database.data_dir": data_dir, "database.url": database_url, "config": config} | flags
    )
