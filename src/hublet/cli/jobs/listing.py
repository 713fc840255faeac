"""Commands that show jobs, and what they can run on."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.asking import asking
from hublet.cli.jobs import showing
from hublet.cli.jobs.arguments import JobId, Namespace, find_jobs, jobs_of
from hublet.cli.output import Answer, Table

if TYPE_CHECKING:
    from hublet.client import Hub

_ID = "6a5f0c2e9d1b4a7788990011"
_GOING_ON = ("SCHEDULING", "RUNNING")


def register(group: typer.Typer) -> None:
    asking(group, "list", list_jobs, example="hublet jobs list --all --label name=nightly")
    asking(group, "inspect", inspect, example=f"hublet jobs inspect {_ID} --json")
    asking(group, "hardware", hardware, example="hublet jobs hardware", anonymously=True)


def list_jobs(
    hub: "Hub",
    *,
    every: Annotated[bool, typer.Option("--all", "-a", help="Also those that are over.")] = False,
    status: Annotated[
        str | None,
        typer.Option(metavar="STAGE,…", help="In these stages, as in completed,error."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="NAME=VALUE", help="With all these labels."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="COUNT", min=1, help="At most so many.")] = 100,
    namespace: Namespace = None,
) -> Table:
    """List jobs that wait or run, newest first."""
    stages: tuple[str, ...] = () if every else _GOING_ON
    if status is not None:
        stages = tuple(stage.strip().upper() for stage in status.split(","))
    found = jobs_of(hub, namespace).list(stages=stages, labels=label or ())
    return showing.table(list(islice(found, limit)))


def inspect(hub: "Hub", job_id: JobId, *, namespace: Namespace = None) -> Answer:
    """Show a job: what it runs, how far it is, where it is reached."""
    jobs, alone = find_jobs(hub, job_id, namespace)
    return showing.details(jobs.get(alone))


def hardware(hub: "Hub") -> Table:
    """List the flavors that a job may ask for."""
    from hublet.client.jobs import list_hardware

    found = list_hardware(hub)
    return Table(
        rows=found,
        columns={"name": "name", "cpu": "cpu", "memory": "ram"},
        name="name",
        empty="This hub offers nothing to run jobs on.",
    )
