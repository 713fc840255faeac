"""Command that checks a hub's installation and reports problems."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hublet.cli.local_hub import run_loop
from hublet.cli.options import AsJson, Config, DatabaseUrl, DataDir, load_settings
from hublet.cli.output import align, paint, replace_unprintable, show_json

if TYPE_CHECKING:
    from hublet.doctor.checks import Finding

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def register(app: typer.Typer) -> None:
    app.command("doctor", epilog="Example: hublet doctor --data-dir ./hub")(doctor)


def doctor(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, keys, clock, data folder, database and work; exit with 1 on a problem."""
    findings = run_loop(_examine(data_dir=data_dir, database_url=database_url, config=config))
    if as_json:
        show_json([_row(finding) for finding in findings])
    else:
        typer.echo("\n".join(_format_lines(findings)))
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)


async def _examine(
    *, data_dir: Path | None, database_url: str | None, config: Path | None
) -> "list[Finding]":
    """Run all checks; invalid settings are the only finding then."""
    from hublet.core.config import ConfigurationError
    from hublet.doctor import examine
    from hublet.doctor.checks import problem

    try:
        settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
    except ConfigurationError as error:
        return [
            problem("settings", line, "Correct it; docs/operating.md tells of every setting.")
            for line in str(error).splitlines()
        ]
    return await examine(settings)


def _row(finding: "Finding") -> dict[str, str | None]:
    return {
        "check": finding.check,
        "status": finding.status,
        "found": finding.found,
        "advice": finding.advice,
    }


def _format_lines(findings: "list[Finding]") -> list[str]:
    rows = [
        (
            each.status,
            each.check,
            replace_unprintable(" ".join(filter(None, (each.found, each.advice)))),
        )
        for each in findings
    ]
    return [
        paint(each.status, colour=_COLOURS[each.status]) + line.removeprefix(each.status)
        for each, line in zip(findings, align(rows, width=None), strict=True)
    ]
