"""Commands that start jobs."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.asking import asking
from hublet.cli.jobs import arguments as given
from hublet.cli.jobs.arguments import find_jobs, jobs_of, read_job, read_reach
from hublet.cli.jobs.following import to_the_end
from hublet.cli.jobs.showing import what
from hublet.cli.output import Answer, cell

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.jobs import Job, Jobs

_ID = "6a5f0c2e9d1b4a7788990011"
_Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Print the id, and do not wait for the end.")
]


def register(group: typer.Typer) -> None:
    asking(group, "run", run, example="hublet jobs run ubuntu -- echo hello")
    asking(group, "rerun", rerun, example=f"hublet jobs rerun {_ID} --detach")


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
) -> Generator[Answer]:
    """Run a command in an image, show what it prints, and end as it ends."""
    body = read_job(
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
    ) | read_reach(
        expose=expose,
        expose_public=expose_public,
        ssh=ssh,
        network_group=network_group,
        network_alias=network_alias,
    )
    jobs = jobs_of(hub, namespace)
    yield from _begun(jobs, jobs.run(body), detach=detach)


def rerun(
    hub: "Hub", job_id: given.JobId, *, detach: _Detach = False, namespace: given.Namespace = None
) -> Generator[Answer]:
    """Run a job once more, with the same secrets."""
    jobs, alone = find_jobs(hub, job_id, namespace)
    yield from _begun(jobs, jobs.rerun(alone), detach=detach)


def _begun(jobs: "Jobs", job: "Job", *, detach: bool) -> Generator[Answer]:
    status = job["status"]
    reached = [*status.get("exposeUrls", []), *filter(None, [status.get("sshUrl")])]
    words = [f"Started the job {job['id']} in {cell(what(job))}."]
    words += [f"It is reached at {cell(address)}" for address in reached]
    yield Answer(data=job, text=job["id"] if detach else None, words="\n".join(words))
    if not detach:
        yield from to_the_end(jobs, job["id"])
