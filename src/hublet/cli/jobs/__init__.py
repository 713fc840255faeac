"""Commands for jobs: run, follow, manage and schedule them."""

import typer

from hublet.cli.jobs import manage, runs, schedules
from hublet.cli.options import new_group


def register(app: typer.Typer) -> None:
    jobs = new_group("Run jobs, follow what they print, have them run by the clock.")
    runs.register(jobs)
    manage.register(jobs)
    schedules.register(jobs)
    app.add_typer(jobs, name="jobs")
