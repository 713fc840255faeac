"""Commands for jobs: running them, following them, and having them run by the clock."""

import typer

from hublet.cli.jobs import changing, following, listing, running, scheduling
from hublet.cli.options import a_group


def register(app: typer.Typer) -> None:
    jobs = a_group("Run jobs, follow what they print, have them run by the clock.")
    for commands in (running, listing, following, changing, scheduling):
        commands.register(jobs)
    app.add_typer(jobs, name="jobs")
