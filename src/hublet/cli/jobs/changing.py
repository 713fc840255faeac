"""Commands that change jobs."""

from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.asking import asking, confirm
from hublet.cli.jobs.arguments import (
    JobId,
    Label,
    Name,
    Namespace,
    find_jobs,
    read_labels,
    read_ports,
)
from hublet.cli.options import Yes
from hublet.cli.output import Answer, cell

if TYPE_CHECKING:
    from hublet.client import Hub

_ID = "6a5f0c2e9d1b4a7788990011"
_Clear = Annotated[bool, typer.Option("--clear", help="Take all away.")]


def register(group: typer.Typer) -> None:
    asking(group, "cancel", cancel, example=f"hublet jobs cancel {_ID}")
    asking(group, "labels", labels, example=f"hublet jobs labels {_ID} --label team=navy")
    asking(group, "expose", expose, example=f"hublet jobs expose {_ID} 8080 --public 8081")
    asking(group, "delete", delete, example=f"hublet jobs delete {_ID} --yes")


def cancel(hub: "Hub", job_id: JobId, *, namespace: Namespace = None) -> Answer:
    """Ask a job to end."""
    jobs, alone = find_jobs(hub, job_id, namespace)
    job = jobs.cancel(alone)
    return Answer(data=job, text=job["id"], words="It is canceled within moments.")


def labels(
    hub: "Hub",
    job_id: JobId,
    *,
    label: Label = None,
    name: Name = None,
    clear: _Clear = False,
    namespace: Namespace = None,
) -> Answer:
    """Replace the labels of a job."""
    wanted = read_labels(label, name=name)
    if bool(wanted) is clear:
        raise typer.BadParameter("Give labels, or --clear, and not both.")
    jobs, alone = find_jobs(hub, job_id, namespace)
    job = jobs.set_labels(alone, wanted)
    return Answer(data=job, text=job["id"], words="Its labels are replaced.")


def expose(
    hub: "Hub",
    job_id: JobId,
    ports: Annotated[
        list[int] | None, typer.Argument(metavar="PORT", help="For who reads its jobs.")
    ] = None,
    *,
    public: Annotated[
        list[int] | None,
        typer.Option("--public", metavar="PORT", help="For everybody; may be repeated."),
    ] = None,
    clear: _Clear = False,
    namespace: Namespace = None,
) -> Answer:
    """Replace the ports at which a job is reached."""
    wanted = read_ports(ports, public)
    if bool(wanted["ports"]) is clear:
        raise typer.BadParameter("Give ports, or --clear, and not both.")
    jobs, alone = find_jobs(hub, job_id, namespace)
    job = jobs.expose(alone, ports=wanted["ports"], public=wanted["portsPublic"])
    addresses = job["status"].get("exposeUrls", [])
    text = "\n".join(map(cell, addresses)) or None
    return Answer(data=job, text=text, words=None if addresses else "It is reached no more.")


def delete(hub: "Hub", job_id: JobId, *, namespace: Namespace = None, yes: Yes = False) -> Answer:
    """Delete a job that is over, with what it printed."""
    jobs, alone = find_jobs(hub, job_id, namespace)
    confirm(f"Delete the job {cell(alone)} with what it printed?", yes=yes)
    jobs.delete(alone)
    return Answer(
        data={"id": alone, "deleted": True}, text=alone, words=f"Deleted the job {alone}."
    )
