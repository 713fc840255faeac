"""Command that reports leaked credentials to a hub, which revokes them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.options import read_lines
from hublet.cli.output import CommandResult, say, show_progress
from hublet.cli.remote_command import add_remote_command

if TYPE_CHECKING:
    from hublet.client import Hub

# Interface 8.
_PER_REQUEST = 1000
_MAX_CHARACTERS = 200


def register(app: typer.Typer) -> None:
    add_remote_command(
        app, "revoke", revoke, example="hublet revoke --file leaked.txt", anonymously=True
    )


def revoke(
    hub: "Hub",
    credentials: Annotated[
        list[str] | None,
        typer.Argument(metavar="CREDENTIAL", help="What was found; - reads standard input."),
    ] = None,
    *,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with one credential on each line.")
    ] = None,
) -> CommandResult:
    """Have credentials revoked that leaked. Nobody learns which of them existed.

    Whoever has the value may do so; the owners are told. Arguments stay in the history of the
    shell: a file or standard input does not.
    """
    unique = list(dict.fromkeys(_read_credentials(credentials or [], file)))
    if not unique:
        raise typer.BadParameter("There is no credential: give some, or --file, or - to read them.")
    with show_progress("Handing them in"):
        _send_in_batches(hub, unique)
    count = len(unique)
    return CommandResult(
        data={"count": count},
        message=f"Handed in {count} credential{'' if count == 1 else 's'}. What existed is revoked "
        "within a second, and its owner is told.",
    )


def _send_in_batches(hub: "Hub", credentials: Sequence[str]) -> None:
    from hublet.client import ClientError

    for start in range(0, len(credentials), _PER_REQUEST):
        try:
            part = credentials[start : start + _PER_REQUEST]
            hub.post("/api/credentials/revoke", {"credentials": part})
        except ClientError:
            if start:
                say(f"{start} of {len(credentials)} were handed in before this:")
            raise


def _read_credentials(given: Sequence[str], file: Path | None) -> Iterator[str]:
    arguments = [each for each in given if each != "-"]
    if arguments:
        say("What stands in a command stays in the history of the shell; a file does not.")
    yield from _check_lines(arguments, "Argument")
    if "-" in given:
        yield from _check_lines(sys.stdin.read().removeprefix("\ufeff").splitlines(), "Line")
    if file is not None:
        yield from _check_lines(read_lines(file, "--file"), "Line")


def _check_lines(lines: Sequence[str], what: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        credential = line.strip()
        if len(credential) > _MAX_CHARACTERS:
            # The line may hold a credential beside other text, so the message does not repeat it.
            raise typer.BadParameter(
                f"{what} {number} has more than {_MAX_CHARACTERS} characters; no credential has."
            )
        if credential:
            yield credential
