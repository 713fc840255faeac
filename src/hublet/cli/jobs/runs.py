"""Commands that start jobs and follow them: run, rerun, logs, wait, stats."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.jobs import arguments
from hublet.cli.jobs.arguments import (
    JobId,
    Namespace,
    client_of,
    find_client,
    parse_access,
    parse_job,
)
from hublet.cli.jobs.manage import image_of, job_outcome
from hublet.cli.options import EXAMPLE_ID
from hublet.cli.output import CommandResult, format_cell, say
from hublet.cli.remote_command import add_remote_command

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.events import Event
    from hublet.client.jobs import Job, Jobs


_MIB = 2**20
# Client contract 3.4: the line at the start of an attempt, which clients do not show.
_ATTEMPT_MARK = "===== Job started"

_Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Print the id, and do not wait for the end.")
]


def register(group: typer.Typer) -> None:
    add_remote_command(group, "run", run, example="hublet jobs run ubuntu -- echo hello")
    add_remote_command(group, "rerun", rerun, example=f"hublet jobs rerun {EXAMPLE_ID} --detach")
    add_remote_command(group, "logs", logs, example=f"hublet jobs logs {EXAMPLE_ID} --follow")
    add_remote_command(group, "wait", wait, example=f"hublet jobs wait {EXAMPLE_ID}")
    add_remote_command(group, "stats", stats, example=f"hublet jobs stats {EXAMPLE_ID} --follow")


def run(
    hub: "Hub",
    image: arguments.Image,
    command: arguments.Command = None,
    *,
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
    expose: arguments.Expose = None,
    expose_public: arguments.ExposePublic = None,
    ssh: arguments.Ssh = False,
    network_group: arguments.NetworkGroup = None,
    network_alias: arguments.NetworkAlias = None,
    detach: _Detach = False,
    namespace: arguments.Namespace = None,
) -> Generator[CommandResult]:
    """Run a command in an image, show what it prints, and end as it ends."""
    body = parse_job(
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
    ) | parse_access(
        expose=expose,
        expose_public=expose_public,
        ssh=ssh,
        network_group=network_group,
        network_alias=network_alias,
    )
    jobs = client_of(hub, namespace)
    yield from _follow_start(jobs, jobs.run(body), detach=detach)


def rerun(
    hub: "Hub",
    job_id: arguments.JobId,
    *,
    detach: _Detach = False,
    namespace: arguments.Namespace = None,
) -> Generator[CommandResult]:
    """Run a job once more, with the same secrets."""
    jobs, plain_id = find_client(hub, job_id, namespace)
    yield from _follow_start(jobs, jobs.rerun(plain_id), detach=detach)


def logs(
    hub: "Hub",
    job_id: JobId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job is over.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", metavar="COUNT", min=0, help="The last lines.")
    ] = None,
    namespace: Namespace = None,
) -> Generator[CommandResult]:
    """Show what a job has printed; followed, also what it prints until it is over."""
    from hublet.client.jobs import follow_logs

    jobs, plain_id = find_client(hub, job_id, namespace)
    events = (
        follow_logs(jobs, plain_id, tail=tail, on_disconnect=_report_lost_hub)
        if follow
        else jobs.logs(plain_id, tail=tail)
    )
    for event in events:
        yield from _log_line(event)


def wait(
    hub: "Hub",
    job_ids: Annotated[list[str], typer.Argument(metavar="ID", help="The jobs.")],
    *,
    namespace: Namespace = None,
) -> Generator[CommandResult]:
    """Wait until jobs are over; fails unless all of them are COMPLETED."""
    from hublet.client.jobs import wait_for_end

    clients = [find_client(hub, job_id, namespace) for job_id in job_ids]
    # All are fetched first: after that, a hub that does not answer is waited for.
    for jobs, job in [(jobs, jobs.get(plain_id)) for jobs, plain_id in clients]:
        yield job_outcome(wait_for_end(jobs, job, on_disconnect=_report_lost_hub))


def stats(
    hub: "Hub",
    job_id: JobId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Each second, while the job runs.")
    ] = False,
    namespace: Namespace = None,
) -> Generator[CommandResult]:
    """Show what a running job uses."""
    jobs, plain_id = find_client(hub, job_id, namespace)
    has_measurement = False
    for event in jobs.metrics(plain_id):
        has_measurement = True
        usage = event.read()
        memory = (usage[f"memory_{name}_bytes"] // _MIB for name in ("used", "total"))
        cores = usage["cpu_millicores"] / 1000
        text = f"cpu {usage['cpu_usage_pct']:.0f}% of {cores:g}  memory {next(memory)} of {next(memory)} MiB"
        yield CommandResult(data=usage, text=text)
        if not follow:
            return
    if not has_measurement:
        yield CommandResult(data={}, message="The job does not run: there is nothing to measure.")


def _follow_start(jobs: "Jobs", job: "Job", *, detach: bool) -> Generator[CommandResult]:
    status = job["status"]
    addresses = [*status.get("exposeUrls", []), *filter(None, [status.get("sshUrl")])]
    lines = [f"Started the job {job['id']} in {format_cell(image_of(job))}."]
    lines += [f"It is reached at {format_cell(address)}" for address in addresses]
    yield CommandResult(data=job, text=job["id"] if detach else None, message="\n".join(lines))
    if not detach:
        yield from follow_to_end(jobs, job["id"])


def follow_to_end(jobs: "Jobs", job_id: str) -> Generator[CommandResult]:
    """Yield what a job prints, and then how it ended."""
    from hublet.client.jobs import follow_logs, wait_for_end

    for event in follow_logs(jobs, job_id, on_disconnect=_report_lost_hub):
        yield from _log_line(event)
    yield job_outcome(wait_for_end(jobs, jobs.get(job_id), on_disconnect=_report_lost_hub))


def _log_line(event: "Event") -> Generator[CommandResult]:
    line = event.read()
    if not line["data"].startswith(_ATTEMPT_MARK):
        yield CommandResult(data=line, text=line["data"])


def _report_lost_hub(reason: str) -> None:
    say(f"The hub is gone ({reason}); waiting for it to come back.")
