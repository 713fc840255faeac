"""Makes a command of a function that works on the hub's data."""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hublet.cli.loop import run_loop
from hublet.cli.opening import opened
from hublet.cli.options import AsJson, Config, DatabaseUrl, DataDir, Quiet, settings_from
from hublet.cli.output import Answer, Table, show, show_table

if TYPE_CHECKING:
    from hublet.core.config import Settings


def option(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


_WHERE = (
    option("data_dir", DataDir, None),
    option("database_url", DatabaseUrl, None),
    option("config", Config, None),
    option("as_json", AsJson, False),
)
_QUIET = option("quiet", Quiet, False)


def changing(
    group: typer.Typer,
    name: str,
    work: Callable[..., Awaitable[Answer]],
    *,
    example: str,
    prepare: bool = False,
) -> None:
    """Add a command that changes something.

    `work` gets a transaction and then its own arguments, which become those of the command.
    What it answers is printed after the commit: nothing is told that was not kept. Where there
    is no hub yet, `prepare` makes one; all others say so.
    """

    def command(
        *,
        data_dir: Path | None,
        database_url: str | None,
        config: Path | None,
        as_json: bool,
        **given: Any,
    ) -> None:
        settings = settings_from(data_dir=data_dir, database_url=database_url, config=config)
        show(run_loop(_change(settings, work, given, prepare=prepare)), as_json=as_json)

    register(group, name, work, command, options=_WHERE, example=example)


def listing(
    group: typer.Typer, name: str, work: Callable[..., Awaitable[Table]], *, example: str
) -> None:
    """Add a command that shows a list; `work` gets a reader and then its own arguments."""

    def command(
        *,
        data_dir: Path | None,
        database_url: str | None,
        config: Path | None,
        as_json: bool,
        quiet: bool,
        **given: Any,
    ) -> None:
        settings = settings_from(data_dir=data_dir, database_url=database_url, config=config)
        show_table(run_loop(_read(settings, work, given)), as_json=as_json, quiet=quiet)

    register(group, name, work, command, options=(*_WHERE, _QUIET), example=example)


async def _change(
    settings: "Settings",
    work: Callable[..., Awaitable[Answer]],
    given: dict[str, Any],
    *,
    prepare: bool,
) -> Answer:
    async with opened(settings, prepare=prepare) as database, database.transaction() as conn:
        return await work(conn, **given)


async def _read(
    settings: "Settings", work: Callable[..., Awaitable[Table]], given: dict[str, Any]
) -> Table:
    async with opened(settings, prepare=False) as database, database.read() as conn:
        return await work(conn, **given)


def register(
    group: typer.Typer,
    name: str,
    work: Callable[..., object],
    command: Callable[..., None],
    *,
    options: tuple[inspect.Parameter, ...],
    example: str,
) -> None:
    """Add a command with the arguments of its work, but for the first, and these options."""
    _given, *own = inspect.signature(work).parameters.values()
    arguments = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    # Typer reads the signature, so the command shows the arguments of the work.
    command.__dict__["__signature__"] = inspect.Signature([*arguments, *options])
    group.command(name, help=work.__doc__, epilog=f"Example: {example}")(command)
