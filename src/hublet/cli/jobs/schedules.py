"""Commands for scheduled jobs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hublet.cli.jobs import arguments
from hublet.cli.jobs.arguments import Namespace, parse_job, schedules_client_of
from hublet.cli.jobs.manage import image_of
from hublet.cli.options import EXAMPLE_ID, Yes, new_group
from hublet.cli.output import CommandResult, Table, align, format_cell, parse_time
from hublet.cli.remote_command import add_remote_command, confirm

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.jobs import ScheduledJob

_Id = Annotated[str, typer.Argument(metavar="ID", help="The scheduled job's id.")]
_Schedule = Annotated[
    str,
    typer.Argument(metavar="SCHEDULE", help="Five fields of cron in UTC, or @daily and the like."),
]


def register(group: typer.Typer) -> None:
    scheduled = new_group("Have jobs run by the clock.")
    add_remote_command(
        scheduled, "run", run, example='hublet jobs scheduled run "0 4 * * *" ubuntu -- echo hello'
    )
    add_remote_command(scheduled, "list", list_scheduled, example="hublet jobs scheduled list")
    add_remote_command(
        scheduled, "inspect", inspect, example=f"hublet jobs scheduled inspect {EXAMPLE_ID}"
    )
    add_remote_command(
        scheduled, "suspend", suspend, example=f"hublet jobs scheduled suspend {EXAMPLE_ID}"
    )
    add_remote_command(
        scheduled, "resume", resume, example=f"hublet jobs scheduled resume {EXAMPLE_ID}"
    )
    add_remote_command(
        scheduled,
        "reschedule",
        reschedule,
        example=f"hublet jobs scheduled reschedule {EXAMPLE_ID} @daily",
    )
    add_remote_command(
        scheduled, "trigger", trigger, example=f"hublet jobs scheduled trigger {EXAMPLE_ID}"
    )
    add_remote_command(
        scheduled, "delete", delete, example=f"hublet jobs scheduled delete {EXAMPLE_ID} --yes"
    )
    group.add_typer(scheduled, name="scheduled")


def run(
    hub: "Hub",
    schedule: _Schedule,
    image: arguments.Image,
    command: arguments.Command = None,
    *,
    suspend: Annotated[bool, typer.Option("--suspend", help="Not before it is resumed.")] = False,
    concurrency: Annotated[
        bool, typer.Option("--concurrency", help="Also while the last one still runs.")
    ] = False,
    env: arguments.Env = None,
    env_file: arguments.EnvFile = None,
    secrets: arguments.Secrets = None,
    secrets_file: arguments.SecretsFile = None,
    flavor: arguments.Flavor = "cpu-basic",
    timeout: arguments.Timeout = None,
    attempts: arguments.Attempts = None,
    name: arguments.Name = None,
    label: arguments.Label = None,
    volume: arguments.Volume = None,
    namespace: Namespace = None,
) -> CommandResult:
    """Have a command run by the clock."""
    job = parse_job(
        image=image,
        command=command,
        flavor=flavor,
        env=env,
        env_file=env_file,
        secrets=secrets,
        secrets_file=secrets_file,
        timeout=timeout,
        attempts=attempts,
        name=name,
        label=label,
        volume=volume,
    )
    body = {
        "jobSpec": job,
        "schedule": schedule,
        "suspend": suspend,
        "concurrency": concurrency,
    }
    return _change_result(schedules_client_of(hub, namespace).create(body))


def list_scheduled(hub: "Hub", *, namespace: Namespace = None) -> Table:
    """List what runs by the clock, newest first."""
    scheduled = schedules_client_of(hub, namespace).list()
    return Table(
        rows=[_row(each) for each in scheduled],
        columns={
            "id": "id",
            "schedule": "schedule",
            "runs": "runs",
            "suspended": "suspended",
            "last": "last",
            "next": "next",
        },
        name="id",
        empty="Nothing runs by the clock.",
        data=scheduled,
    )


def inspect(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> CommandResult:
    """Show a scheduled job: what it runs, when it ran, when it runs next."""
    scheduled = schedules_client_of(hub, namespace).get(scheduled_job_id)
    lines = align(
        [[name, format_cell(value)] for name, value in _row(scheduled).items()], width=None
    )
    return CommandResult(data=scheduled, text="\n".join(lines))


def suspend(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> CommandResult:
    """Start no more jobs by the clock until it is resumed."""
    return _change_result(schedules_client_of(hub, namespace).suspend(scheduled_job_id))


def resume(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> CommandResult:
    """Go on; the times that passed meanwhile are not made up for."""
    return _change_result(schedules_client_of(hub, namespace).resume(scheduled_job_id))


def reschedule(
    hub: "Hub", scheduled_job_id: _Id, schedule: _Schedule, *, namespace: Namespace = None
) -> CommandResult:
    """Change the times at which it runs."""
    return _change_result(
        schedules_client_of(hub, namespace).reschedule(scheduled_job_id, schedule)
    )


def trigger(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> CommandResult:
    """Run it now, besides its times; prints the id of the job."""
    job = schedules_client_of(hub, namespace).trigger(scheduled_job_id)
    return CommandResult(data=job, text=job["id"], message=f"Started the job {job['id']}.")


def delete(
    hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None, yes: Yes = False
) -> CommandResult:
    """Delete a scheduled job; the jobs that it started stay."""
    confirm(f"Delete the scheduled job {format_cell(scheduled_job_id)}?", yes=yes)
    schedules_client_of(hub, namespace).delete(scheduled_job_id)
    return CommandResult(
        data={"id": scheduled_job_id, "deleted": True},
        text=scheduled_job_id,
        message=f"Deleted the scheduled job {scheduled_job_id}.",
    )


def _change_result(scheduled: "ScheduledJob") -> CommandResult:
    row = _row(scheduled)
    message = (
        "It is suspended."
        if row["suspended"]
        else f"It runs next at {format_cell(row['next'])} UTC."
    )
    return CommandResult(data=scheduled, text=scheduled["id"], message=message)


def _row(scheduled: "ScheduledJob") -> dict[str, object]:
    spec: dict[str, Any] = scheduled["jobSpec"]
    status = scheduled["status"]
    last = status.get("lastJob")
    return {
        "id": scheduled["id"],
        "schedule": scheduled["schedule"],
        "runs": " ".join([image_of(spec), *spec.get("command", []), *spec.get("arguments", [])]),
        "suspended": scheduled["suspend"],
        "last": parse_time(last["at"]) if last else None,
        "next": parse_time(status.get("nextJobRunAt")),
    }
