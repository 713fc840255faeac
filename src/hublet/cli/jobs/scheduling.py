"""Commands for jobs that run by the clock."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hublet.cli.asking import asking, confirm
from hublet.cli.jobs import arguments as given
from hublet.cli.jobs.arguments import Namespace, read_job, scheduled_of
from hublet.cli.jobs.showing import what
from hublet.cli.options import Yes, a_group
from hublet.cli.output import Answer, Table, aligned, cell, read_moment

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.jobs import ScheduledJob

_ID = "6a5f0c2e9d1b4a7788990011"
_Id = Annotated[str, typer.Argument(metavar="ID", help="The scheduled job's id.")]
_Schedule = Annotated[
    str,
    typer.Argument(metavar="SCHEDULE", help="Five fields of cron in UTC, or @daily and the like."),
]


def register(group: typer.Typer) -> None:
    scheduled = a_group("Have jobs run by the clock.")
    asking(
        scheduled, "run", run, example='hublet jobs scheduled run "0 4 * * *" ubuntu -- echo hello'
    )
    asking(scheduled, "list", list_scheduled, example="hublet jobs scheduled list")
    asking(scheduled, "inspect", inspect, example=f"hublet jobs scheduled inspect {_ID}")
    asking(scheduled, "suspend", suspend, example=f"hublet jobs scheduled suspend {_ID}")
    asking(scheduled, "resume", resume, example=f"hublet jobs scheduled resume {_ID}")
    asking(
        scheduled,
        "reschedule",
        reschedule,
        example=f"hublet jobs scheduled reschedule {_ID} @daily",
    )
    asking(scheduled, "trigger", trigger, example=f"hublet jobs scheduled trigger {_ID}")
    asking(scheduled, "delete", delete, example=f"hublet jobs scheduled delete {_ID} --yes")
    group.add_typer(scheduled, name="scheduled")


def run(
    hub: "Hub",
    schedule: _Schedule,
    image: given.Image,
    command: given.Command = None,
    *,
    suspend: Annotated[bool, typer.Option("--suspend", help="Not before it is resumed.")] = False,
    concurrency: Annotated[
        bool, typer.Option("--concurrency", help="Also while the last one still runs.")
    ] = False,
    env: given.Env = None,
    env_file: given.EnvFile = None,
    secrets: given.Secrets = None,
    secrets_file: given.SecretsFile = None,
    flavor: given.Flavor = "cpu-basic",
    timeout: given.Timeout = None,
    attempts: given.Attempts = None,
    name: given.Name = None,
    label: given.Label = None,
    volume: given.Volume = None,
    namespace: Namespace = None,
) -> Answer:
    """Have a command run by the clock."""
    job = read_job(
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
    return _changed(scheduled_of(hub, namespace).create(body))


def list_scheduled(hub: "Hub", *, namespace: Namespace = None) -> Table:
    """List what runs by the clock, newest first."""
    found = scheduled_of(hub, namespace).list()
    return Table(
        rows=[_row(each) for each in found],
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
        data=found,
    )


def inspect(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> Answer:
    """Show a scheduled job: what it runs, when it ran, when it runs next."""
    found = scheduled_of(hub, namespace).get(scheduled_job_id)
    lines = aligned([[name, cell(value)] for name, value in _row(found).items()], width=None)
    return Answer(data=found, text="\n".join(lines))


def suspend(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> Answer:
    """Start no more jobs by the clock until it is resumed."""
    return _changed(scheduled_of(hub, namespace).suspend(scheduled_job_id))


def resume(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> Answer:
    """Go on; the times that passed meanwhile are not made up for."""
    return _changed(scheduled_of(hub, namespace).resume(scheduled_job_id))


def reschedule(
    hub: "Hub", scheduled_job_id: _Id, schedule: _Schedule, *, namespace: Namespace = None
) -> Answer:
    """Change the times at which it runs."""
    return _changed(scheduled_of(hub, namespace).reschedule(scheduled_job_id, schedule))


def trigger(hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None) -> Answer:
    """Run it now, besides its times; prints the id of the job."""
    job = scheduled_of(hub, namespace).trigger(scheduled_job_id)
    return Answer(data=job, text=job["id"], words=f"Started the job {job['id']}.")


def delete(
    hub: "Hub", scheduled_job_id: _Id, *, namespace: Namespace = None, yes: Yes = False
) -> Answer:
    """Delete a scheduled job; the jobs that it started stay."""
    confirm(f"Delete the scheduled job {cell(scheduled_job_id)}?", yes=yes)
    scheduled_of(hub, namespace).delete(scheduled_job_id)
    return Answer(
        data={"id": scheduled_job_id, "deleted": True},
        text=scheduled_job_id,
        words=f"Deleted the scheduled job {scheduled_job_id}.",
    )


def _changed(scheduled: "ScheduledJob") -> Answer:
    row = _row(scheduled)
    words = "It is suspended." if row["suspended"] else f"It runs next at {cell(row['next'])} UTC."
    return Answer(data=scheduled, text=scheduled["id"], words=words)


def _row(scheduled: "ScheduledJob") -> dict[str, object]:
    spec: dict[str, Any] = scheduled["jobSpec"]
    status = scheduled["status"]
    last = status.get("lastJob")
    return {
        "id": scheduled["id"],
        "schedule": scheduled["schedule"],
        "runs": " ".join([what(spec), *spec.get("command", []), *spec.get("arguments", [])]),
        "suspended": scheduled["suspend"],
        "last": read_moment(last["at"]) if last else None,
        "next": read_moment(status.get("nextJobRunAt")),
    }
