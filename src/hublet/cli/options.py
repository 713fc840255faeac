"""Options that several commands share, and the parsers of their values."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.environment import first_variable

if TYPE_CHECKING:
    from hublet.core.config import Settings
    from hublet.tokens.records import Scope

# An id for the examples in the help.
EXAMPLE_ID = "6a5f0c2e9d1b4a7788990011"

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

AnyName = Annotated[
    bool,
    typer.Option("--any-name", help="Allow a name that breaks the rules, as of a test suite."),
]


def _print_version(asked: bool) -> None:
    if asked:
        from hublet import __version__

        typer.echo(f"hublet {__version__}")
        raise typer.Exit


def without_command(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options of the command itself."""


# Defaults of flags: without them typer imports pydantic even for help and version. The last two are
# flags that typer adds itself.
NOT_GIVEN = {
    "default_map": dict.fromkeys(
        ("help", "version", "install_completion", "show_completion"), False
    )
}


def new_group(help_text: str) -> typer.Typer:
    """Return a group of commands."""
    return typer.Typer(help=help_text, no_args_is_help=True, context_settings=NOT_GIVEN)


def load_settings(
    *,
    data_dir: Path | None = None,
    database_url: str | None = None,
    config: Path | None = None,
    **more: object,
) -> "Settings":
    """Load the settings, overridden by flags; further flags are named like `server__port`."""
    from hublet.core.config import load

    flags: dict[str, object] = {name.replace("__", "."): value for name, value in more.items()}
    return load(
        {"database.data_dir": data_dir, "database.url": database_url, "config": config} | flags
    )


def read_variables(given: list[str] | None, file: Path | None, *, option: str) -> dict[str, str]:
    """Return the variables of a file, overridden by those of the command line.

    `option` names one variable, and the option `{option}-file` a file of them.
    """
    from_file = f"{option}-file"
    lines = [] if file is None else _variable_lines(file, from_file)
    return dict(_parse_file_line(line, from_file) for line in lines) | dict(
        _parse_variable(item, option) for item in given or []
    )


def read_lines(file: Path, option: str) -> list[str]:
    try:
        # Some editors put a byte order mark at the start, which belongs to no line.
        return file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise typer.BadParameter(f"{file} cannot be read as text.", param_hint=option) from None


def parse_scopes(names: list[str]) -> "list[Scope]":
    from hublet.tokens.records import Scope

    if unknown := sorted(set(names) - set(Scope)):
        raise typer.BadParameter(
            f"There is no scope {unknown[0]}; the scopes are {', '.join(Scope)}.",
            param_hint="--scope",
        )
    return [Scope(name) for name in names]


def _variable_lines(file: Path, option: str) -> list[str]:
    lines = read_lines(file, option)
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _parse_file_line(line: str, option: str) -> tuple[str, str]:
    name, value = _parse_variable(line, option)
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return name.strip(), value[1:-1] if quoted else value


def _parse_variable(item: str, option: str) -> tuple[str, str]:
    # The item may be a misplaced secret, so no message repeats it.
    name, equals, value = item.partition("=")
    if not name:
        raise typer.BadParameter("It needs a name, as in NAME=VALUE.", param_hint=option)
    if equals:
        return name, value
    value_in_environment = first_variable(name)
    if value_in_environment is None:
        raise typer.BadParameter(
            "A name without a value is taken from the environment, where it is not set.",
            param_hint=option,
        )
    return name, value_in_environment


_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MAX_DURATION = timedelta(days=36_500)


def parse_duration(text: str) -> timedelta | None:
    """Return the duration, or None if the text is none, is zero, or exceeds a century."""
    match = re.fullmatch(r"([0-9]{1,8})([mhdw])", text)
    if match is None:
        return None
    length = timedelta(**{_UNITS[match[2]]: int(match[1])})
    return length if timedelta() < length <= _MAX_DURATION else None


def parse_past_time(text: str, *, option: str) -> str:
    """Return a point in time as the API writes it; `2h` means two hours ago."""
    from hublet.core.clock import now, wire

    length = parse_duration(text)
    if length is not None:
        return wire(now() - length)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text} is neither a time ago such as 90m, 12h, 30d or 8w nor a moment such as "
            "2026-11-15T01:44:56Z.",
            param_hint=option,
        ) from None
    # Tables show UTC, so a copied time without a zone means UTC.
    return wire(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
