"""Command that verifies the signature of a captured request."""

from pathlib import Path
from typing import Annotated

import typer

from hublet.cli.environment import first_variable
from hublet.cli.options import AsJson, Silent
from hublet.cli.output import CommandResult, show
from hublet.cli.remote_command import REFUSED


def register(group: typer.Typer) -> None:
    example = "hublet webhooks verify --headers headers.txt --body body.json --secret TEXT"
    group.command("verify", epilog=f"Example: {example}")(verify)


def verify(
    *,
    headers: Annotated[
        Path,
        typer.Option("--headers", metavar="FILE", help="Its headers, a line of NAME: VALUE each."),
    ],
    body: Annotated[Path, typer.Option("--body", metavar="FILE", help="Its body, byte for byte.")],
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret", metavar="TEXT", help="May be repeated; else that of WEBHOOK_SECRET."
        ),
    ] = None,
    max_age: Annotated[
        int | None,
        typer.Option(
            "--max-age", metavar="SECONDS", min=0, help="Refuse it when it is older; else any age."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Silent = False,
) -> None:
    """Check whether a captured request comes from a webhook with this secret."""
    from hublet.receiver.signatures import verify as check

    secrets = secret or [each for each in (first_variable("WEBHOOK_SECRET"),) if each]
    if not secrets:
        raise typer.BadParameter("Give --secret, or set WEBHOOK_SECRET.")
    refusal = check(
        _read_headers(headers),
        _read_bytes(body, "--body"),
        secrets=secrets,
        tolerance_seconds=max_age,
    )
    result = CommandResult(
        data={"valid": refusal is None, "reason": None if refusal is None else refusal.reason},
        message="It is genuine."
        if refusal is None
        else f"It is not to be trusted: {refusal.reason}",
    )
    show(result, as_json=as_json, quiet=quiet)
    if refusal is not None:
        raise typer.Exit(REFUSED)


def _read_headers(file: Path) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in _read_bytes(file, "--headers").decode("latin-1").splitlines():
        name, colon, value = line.partition(":")
        # A capture may begin with the request line, which is no header.
        if colon and " " not in name.strip():
            headers[name.strip()] = value.strip()
    return headers


def _read_bytes(file: Path, option: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(
            f"{file} cannot be read: {error.strerror}.", param_hint=option
        ) from None
