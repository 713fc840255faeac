"""Options that several commands share, and how their values are read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.environment import first_variable

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


def new_group(words: str) -> typer.Typer:
    """Return a command that only has commands under it."""
    return typer.Typer(help=words, no_args_is_help=True, context_settings=NOT_GIVEN)


def load_settings(
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


def read_variables(given: list[str] | None, file: Path | None, *, option: str) -> dict[str, str]:
    """Return those of a file and, over them, those of the command line.

    `option` takes one, and the option that ends in `-file` takes the file.
    """
    from_file = f"{option}-file"
    lines = [] if file is None else _read_file_lines(file, from_file)
    return dict(_parse_file_line(line, from_file) for line in lines) | dict(
        _parse_variable(item, option) for item in given or []
    )


def _read_file_lines(file: Path, option: str) -> list[str]:
    try:
        # Some editors put a mark at the start, which is no part of the first name.
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise typer.BadParameter(f"{file} cannot be read as text.", param_hint=option) from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _parse_file_line(line: str, option: str) -> tuple[str, str]:
    name, value = _parse_variable(line, option)
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return name.strip(), value[1:-1] if quoted else value


def _parse_variable(item: str, option: str) -> tuple[str, str]:
    # Of what may be a secret in the wrong place nothing is repeated.
    name, equals, value = item.partition("=")
    if not name:
        raise typer.BadParameter("It needs a name, as in NAME=VALUE.", param_hint=option)
    if equals:
        return name, value
    found = first_variable(name)
    if found is None:
        raise typer.BadParameter(
            "A name without a value is taken from the environment, where it is not set.",
            param_hint=option,
        )
    return name, found
