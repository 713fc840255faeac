"""Commands that list, show, change and delete jobs."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.jobs.arguments import (
    JobId,
    Label,
    Name,
    Namespace,
    client_of,
    find_client,
    parse_labels,
    parse_ports,
)
from hublet.cli.options import EXAMPLE_ID, Yes
from hublet.cli.output import CommandResult, Table, align, format_cell, paint, parse_time
from hublet.cli.remote_command import add_remote_command, confirm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hublet.client import Hub
    from hublet.client.jobs import Job


_COLOURS = {"COMPLETED": "green", "ERROR": "red", "RUNNING": "cyan"}
_ACTIVE_STAGES = ("SCHEDULING", "RUNNING")

_Clear = Annotated[bool, typer.Option("--clear", help="Take all away.")]


def register(group: typer.Typer) -> None:
    add_remote_command(
        group, "list", list_jobs, example="hublet jobs list --all --label name=nightly"
    )
    add_remote_command(
        group, "inspect", inspect, example=f"hublet jobs inspect {EXAMPLE_ID} --json"
    )
    add_remote_command(
        group, "hardware", hardware, example="hublet jobs hardware", anonymously=True
    )
    add_remote_command(group, "cancel", cancel, example=f"hublet jobs cancel {EXAMPLE_ID}")
    add_remote_command(
        group, "labels", labels, example=f"hublet jobs labels {EXAMPLE_ID} --label team=navy"
    )
    add_remote_command(
        group, "expose", expose, example=f"hublet jobs expose {EXAMPLE_ID} 8080 --public 8081"
    )
    add_remote_command(group, "delete", delete, example=f"hublet jobs delete {EXAMPLE_ID} --yes")


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
    stages: tuple[str, ...] = () if every else _ACTIVE_STAGES
    if status is not None:
        stages = tuple(stage.strip().upper() for stage in status.split(","))
    jobs = client_of(hub, namespace).list(stages=stages, labels=label or ())
    return jobs_table(list(islice(jobs, limit)))


def inspect(hub: "Hub", job_id: JobId, *, namespace: Namespace = None) -> CommandResult:
    """Show a job: what it runs, how far it is, where it is reached."""
    jobs, plain_id = find_client(hub, job_id, namespace)
    return job_details(jobs.get(plain_id))


def hardware(hub: "Hub") -> Table:
    """List the flavors that a job may ask for."""
    from hublet.client.jobs import list_hardware

    return Table(
        rows=list_hardware(hub),
        columns={"name": "name", "cpu": "cpu", "memory": "ram"},
        name="name",
        empty="This hub offers nothing to run jobs on.",
    )


def cancel(hub: "Hub", job_id: JobId, *, namespace: Namespace = None) -> CommandResult:
    """Ask a job to end."""
    jobs, plain_id = find_client(hub, job_id, namespace)
    job = jobs.cancel(plain_id)
    return CommandResult(data=job, text=job["id"], message="It is canceled within moments.")


def labels(
    hub: "Hub",
    job_id: JobId,
    *,
    label: Label = None,
    name: Name = None,
    clear: _Clear = False,
    namespace: Namespace = None,
) -> CommandResult:
    """Replace the labels of a job."""
    new_labels = parse_labels(label, name=name)
    if bool(new_labels) is clear:
        raise typer.BadParameter("Give labels, or --clear, and not both.")
    jobs, plain_id = find_client(hub, job_id, namespace)
    job = jobs.set_labels(plain_id, new_labels)
    return CommandResult(data=job, text=job["id"], message="Its labels are replaced.")


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
) -> CommandResult:
    """Replace the ports at which a job is reached."""
    exposed = parse_ports(ports, public)
    if bool(exposed["ports"]) is clear:
        raise typer.BadParameter("Give ports, or --clear, and not both.")
    jobs, plain_id = find_client(hub, job_id, namespace)
    job = jobs.expose(plain_id, ports=exposed["ports"], public=exposed["portsPublic"])
    addresses = job["status"].get("exposeUrls", [])
    text = "\n".join(map(format_cell, addresses)) or None
    return CommandResult(
        data=job, text=text, message=None if addresses else "It is reached no more."
    )


def delete(
    hub: "Hub", job_id: JobId, *, namespace: Namespace = None, yes: Yes = False
) -> CommandResult:
    """Delete a job that is over, with what it printed."""
    jobs, plain_id = find_client(hub, job_id, namespace)
    confirm(f"Delete the job {format_cell(plain_id)} with what it printed?", yes=yes)
    jobs.delete(plain_id)
    return CommandResult(
        data={"id": plain_id, "deleted": True},
        text=plain_id,
        message=f"Deleted the job {plain_id}.",
    )


def jobs_table(jobs: "Sequence[Job]") -> Table:
    return Table(
        rows=[job_row(job) for job in jobs],
        columns={
            "id": "id",
            "name": "name",
            "runs": "runs",
            "created": "createdAt",
            "stage": "stage",
            "seconds": "seconds",
        },
        name="id",
        empty="There are no such jobs.",
        data=jobs,
    )


def job_row(job: "Job") -> dict[str, object]:
    command = [*job.get("command", []), *job.get("arguments", [])]
    return {
        "id": job["id"],
        "name": _name_of(job),
        "runs": " ".join([image_of(job), *command]),
        "createdAt": parse_time(job["createdAt"]),
        "stage": job["status"]["stage"],
        "seconds": round(job["durations"]["runningSecs"]),
    }


def _name_of(job: "Job") -> str | None:
    """Return the value of the label `name`, which the record shows as a tag."""
    names = (tag.removeprefix("name=") for tag in job["tags"] if tag.startswith("name="))
    return next(names, None)


def image_of(job: "Job") -> str:
    return job.get("dockerImage") or f"spaces/{job['spaceId']}"


def job_details(job: "Job") -> CommandResult:
    status = job["status"]
    fields = {
        "id": job["id"],
        "owner": job["owner"]["name"],
        **{name: job_row(job)[name] for name in ("name", "runs")},
        "flavor": job["flavor"],
        "stage": status["stage"],
        "message": status["message"],
        "failures": status["failureCount"],
        "created": parse_time(job["createdAt"]),
        "started": parse_time(job.get("startedAt")),
        "finished": parse_time(job.get("finishedAt")),
        "secrets": list(job.get("secrets", {})),
        "ports": status.get("exposeUrls", []),
        "ssh": status.get("sshUrl"),
    }
    lines = align([[name, format_cell(value)] for name, value in fields.items()], width=None)
    return CommandResult(data=job, text="\n".join(lines))


def job_outcome(job: "Job") -> CommandResult:
    """Return how a job ended; only COMPLETED is success."""
    status = job["status"]
    reason = f": {format_cell(status['message'])}" if status["message"] else "."
    stage = paint(status["stage"], colour=_COLOURS.get(status["stage"]))
    return CommandResult(
        data=job,
        message=f"The job {job['id']} is {stage}{reason}",
        failed=status["stage"] != "COMPLETED",
    )
