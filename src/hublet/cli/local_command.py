"""Local commands: turn a function on the hub's database into a command."""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hublet.cli.local_hub import open_local_hub, run_loop
from hublet.cli.options import AsJson, Config, DatabaseUrl, DataDir, Quiet, load_settings
from hublet.cli.output import CommandResult, Table, show, show_table

if TYPE_CHECKING:
    from hublet.core.config import Settings


def option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


_LOCATION_OPTIONS = (
    option("data_dir", DataDir, None),
    option("database_url", DatabaseUrl, None),
    option("config", Config, None),
    option("as_json", AsJson, False),
)
_QUIET_OPTION = option("quiet", Quiet, False)


def add_change_command(
    group: typer.Typer,
    name: str,
    work: Callable[..., Awaitable[CommandResult]],
    *,
    example: str,
    prepare: bool = False,
) -> None:
    """Add a command that changes something.

    `work` gets a transaction and then its own arguments, which become those of the command. Its
    result is printed after the commit. Without a hub the command fails, or `prepare` creates one.
    """

    def command(
        *,
        data_dir: Path | None,
        database_url: str | None,
        config: Path | None,
        as_json: bool,
        **given: Any,
    ) -> None:
        settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
        show(run_loop(_change(settings, work, given, prepare=prepare)), as_json=as_json)

    attach_command(group, name, work, command, options=_LOCATION_OPTIONS, example=example)


def add_database_command(
    group: typer.Typer,
    name: str,
    work: Callable[..., Awaitable[CommandResult]],
    *,
    example: str,
    prepare: bool = False,
) -> None:
    """Add a command that takes many transactions; `work` gets the database and its own arguments.

    Without a hub the command fails, or `prepare` creates one.
    """

    def command(
        *,
        data_dir: Path | None,
        database_url: str | None,
        config: Path | None,
        as_json: bool,
        **given: Any,
    ) -> None:
        settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
        result = run_loop(_work(settings, work, given, prepare=prepare))
        show(result, as_json=as_json)
        if result.failed:
            raise typer.Exit(1)

    attach_command(group, name, work, command, options=_LOCATION_OPTIONS, example=example)


def add_list_command(
    group: typer.Typer, name: str, work: Callable[..., Awaitable[Table]], *, example: str
) -> None:
    """Add a command that prints a list; `work` gets a reader and then its own arguments."""

    def command(
        *,
        data_dir: Path | None,
        database_url: str | None,
        config: Path | None,
        as_json: bool,
        quiet: bool,
        **given: Any,
    ) -> None:
        settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
        show_table(run_loop(_read(settings, work, given)), as_json=as_json, quiet=quiet)

    attach_command(
        group, name, work, command, options=(*_LOCATION_OPTIONS, _QUIET_OPTION), example=example
    )


async def _change(
    settings: "Settings",
    work: Callable[..., Awaitable[CommandResult]],
    given: dict[str, Any],
    *,
    prepare: bool,
) -> CommandResult:
    async with (
        open_local_hub(settings, prepare=prepare) as database,
        database.transaction() as conn,
    ):
        return await work(conn, **given)


async def _work(
    settings: "Settings",
    work: Callable[..., Awaitable[CommandResult]],
    given: dict[str, Any],
    *,
    prepare: bool,
) -> CommandResult:
    async with open_local_hub(settings, prepare=prepare) as database:
        return await work(database, **given)


async def _read(
    settings: "Settings", work: Callable[..., Awaitable[Table]], given: dict[str, Any]
) -> Table:
    async with open_local_hub(settings, prepare=False) as database, database.read() as conn:
        return await work(conn, **given)


def attach_command(
    group: typer.Typer,
    name: str,
    work: Callable[..., object],
    command: Callable[..., None],
    *,
    options: tuple[inspect.Parameter, ...],
    example: str,
) -> None:
    """Add a command with the arguments of `work` after its first one, and these options."""
    _first, *own = inspect.signature(work).parameters.values()
    arguments = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    # Typer reads the signature to find the arguments.
    command.__dict__["__signature__"] = inspect.Signature([*arguments, *options])
    group.command(name, help=work.__doc__, epilog=f"Example: {example}")(command)
