"""Command that checks a hub's installation and reports problems."""

from typing import TYPE_CHECKING

import typer

from hublet.cli.local_hub import run_loop
from hublet.cli.options import AsJson, Config, DatabaseUrl, DataDir
from hublet.cli.output import align, paint, replace_unprintable, show_json

if TYPE_CHECKING:
    from hublet.cli.doctor.checks import Finding

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
    from hublet.cli.doctor.examination import examine

    findings = run_loop(examine(data_dir=data_dir, database_url=database_url, config=config))
    if as_json:
        show_json([_row(finding) for finding in findings])
    else:
        typer.echo("\n".join(_format_lines(findings)))
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)


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
