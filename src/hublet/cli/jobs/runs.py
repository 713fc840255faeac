"""Commands that start jobs and follow them: run, rerun, logs, wait, stats."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.jobs import arguments as given
from hublet.cli.jobs.arguments import (
    JobId,
    Namespace,
    client_of,
    find_client,
    parse_access,
    parse_job,
)
from hublet.cli.jobs.manage import image_of, job_outcome
from hublet.cli.output import CommandResult, format_cell, say
from hublet.cli.remote_command import add_remote_command

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.events import Event
    from hublet.client.jobs import Job, Jobs


_ID = "6a5f0c2e9d1b4a7788990011"
_MIB = 2**20
# Client contract 3.4: where an attempt began; clients do not show it.
_ATTEMPT_MARK = "===== Job started"


def register_follow(group: typer.Typer) -> None:
    add_remote_command(group, "logs", logs, example=f"hublet jobs logs {_ID} --follow")
    add_remote_command(group, "wait", wait, example=f"hublet jobs wait {_ID}")
    add_remote_command(group, "stats", stats, example=f"hublet jobs stats {_ID} --follow")


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

    jobs, alone = find_client(hub, job_id, namespace)
    told = (
        follow_logs(jobs, alone, tail=tail, lost=_report_lost_hub)
        if follow
        else jobs.logs(alone, tail=tail)
    )
    for event in told:
        yield from _log_line(event)


def wait(
    hub: "Hub",
    job_ids: Annotated[list[str], typer.Argument(metavar="ID", help="The jobs.")],
    *,
    namespace: Namespace = None,
) -> Generator[CommandResult]:
    """Wait until jobs are over; fails unless all of them are COMPLETED."""
    from hublet.client.jobs import wait_for_end as until_over

    found = [find_client(hub, job_id, namespace) for job_id in job_ids]
    # All are asked for before any is waited for: from then on a hub that is away comes back.
    for jobs, job in [(jobs, jobs.get(alone)) for jobs, alone in found]:
        yield job_outcome(until_over(jobs, job, lost=_report_lost_hub))


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
    jobs, alone = find_client(hub, job_id, namespace)
    seen = False
    for event in jobs.metrics(alone):
        seen = True
        used = event.read()
        memory = (used[f"memory_{name}_bytes"] // _MIB for name in ("used", "total"))
        cores = used["cpu_millicores"] / 1000
        text = f"cpu {used['cpu_usage_pct']:.0f}% of {cores:g}  memory {next(memory)} of {next(memory)} MiB"
        yield CommandResult(data=used, text=text)
        if not follow:
            return
    if not seen:
        yield CommandResult(data={}, words="The job does not run: there is nothing to measure.")


def follow_to_end(jobs: "Jobs", job_id: str) -> Generator[CommandResult]:
    """Show what a job prints, and how it ended."""
    from hublet.client.jobs import follow_logs
    from hublet.client.jobs import wait_for_end as until_over

    for event in follow_logs(jobs, job_id, lost=_report_lost_hub):
        yield from _log_line(event)
    yield job_outcome(until_over(jobs, jobs.get(job_id), lost=_report_lost_hub))


def _log_line(event: "Event") -> Generator[CommandResult]:
    line = event.read()
    if not line["data"].startswith(_ATTEMPT_MARK):
        yield CommandResult(data=line, text=line["data"])


def _report_lost_hub(reason: str) -> None:
    say(f"The hub is gone ({reason}); waiting for it to come back.")


_Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Print the id, and do not wait for the end.")
]


def register_start(group: typer.Typer) -> None:
    add_remote_command(group, "run", run, example="hublet jobs run ubuntu -- echo hello")
    add_remote_command(group, "rerun", rerun, example=f"hublet jobs rerun {_ID} --detach")


def run(
    hub: "Hub",
    image: given.Image,
    command: given.Command = None,
    *,
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
    expose: given.Expose = None,
    expose_public: given.ExposePublic = None,
    ssh: given.Ssh = False,
    network_group: given.NetworkGroup = None,
    network_alias: given.NetworkAlias = None,
    detach: _Detach = False,
    namespace: given.Namespace = None,
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
    hub: "Hub", job_id: given.JobId, *, detach: _Detach = False, namespace: given.Namespace = None
) -> Generator[CommandResult]:
    """Run a job once more, with the same secrets."""
    jobs, alone = find_client(hub, job_id, namespace)
    yield from _follow_start(jobs, jobs.rerun(alone), detach=detach)


def _follow_start(jobs: "Jobs", job: "Job", *, detach: bool) -> Generator[CommandResult]:
    status = job["status"]
    reached = [*status.get("exposeUrls", []), *filter(None, [status.get("sshUrl")])]
    words = [f"Started the job {job['id']} in {format_cell(image_of(job))}."]
    words += [f"It is reached at {format_cell(address)}" for address in reached]
    yield CommandResult(data=job, text=job["id"] if detach else None, words="\n".join(words))
    if not detach:
        yield from follow_to_end(jobs, job["id"])
