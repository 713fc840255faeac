"""Commands that wait for jobs, and show what they print and use."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.asking import asking
from hublet.cli.jobs.arguments import JobId, Namespace, find_jobs
from hublet.cli.jobs.showing import outcome
from hublet.cli.output import Answer, say

if TYPE_CHECKING:
    from hublet.client import Hub
    from hublet.client.events import Event
    from hublet.client.jobs import Jobs

_ID = "6a5f0c2e9d1b4a7788990011"
_MIB = 2**20
# Client contract 3.4: where an attempt began; clients do not show it.
_MARK = "===== Job started"


def register(group: typer.Typer) -> None:
    asking(group, "logs", logs, example=f"hublet jobs logs {_ID} --follow")
    asking(group, "wait", wait, example=f"hublet jobs wait {_ID}")
    asking(group, "stats", stats, example=f"hublet jobs stats {_ID} --follow")


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
) -> Generator[Answer]:
    """Show what a job has printed; followed, also what it prints until it is over."""
    from hublet.client import job_logs

    jobs, alone = find_jobs(hub, job_id, namespace)
    told = (
        job_logs.follow(jobs, alone, tail=tail, lost=_lost)
        if follow
        else jobs.logs(alone, tail=tail)
    )
    for event in told:
        yield from _line(event)


def wait(
    hub: "Hub",
    job_ids: Annotated[list[str], typer.Argument(metavar="ID", help="The jobs.")],
    *,
    namespace: Namespace = None,
) -> Generator[Answer]:
    """Wait until jobs are over; fails unless all of them are COMPLETED."""
    from hublet.client.job_logs import wait as until_over

    found = [find_jobs(hub, job_id, namespace) for job_id in job_ids]
    # All are asked for before any is waited for: from then on a hub that is away comes back.
    for jobs, job in [(jobs, jobs.get(alone)) for jobs, alone in found]:
        yield outcome(until_over(jobs, job, lost=_lost))


def stats(
    hub: "Hub",
    job_id: JobId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Each second, while the job runs.")
    ] = False,
    namespace: Namespace = None,
) -> Generator[Answer]:
    """Show what a running job uses."""
    jobs, alone = find_jobs(hub, job_id, namespace)
    seen = False
    for event in jobs.metrics(alone):
        seen = True
        used = event.read()
        memory = (used[f"memory_{name}_bytes"] // _MIB for name in ("used", "total"))
        cores = used["cpu_millicores"] / 1000
        text = f"cpu {used['cpu_usage_pct']:.0f}% of {cores:g}  memory {next(memory)} of {next(memory)} MiB"
        yield Answer(data=used, text=text)
        if not follow:
            return
    if not seen:
        yield Answer(data={}, words="The job does not run: there is nothing to measure.")


def to_the_end(jobs: "Jobs", job_id: str) -> Generator[Answer]:
    """Show what a job prints, and how it ended."""
    from hublet.client import job_logs

    for event in job_logs.follow(jobs, job_id, lost=_lost):
        yield from _line(event)
    yield outcome(job_logs.wait(jobs, jobs.get(job_id), lost=_lost))


def _line(event: "Event") -> Generator[Answer]:
    line = event.read()
    if not line["data"].startswith(_MARK):
        yield Answer(data=line, text=line["data"])


def _lost(reason: str) -> None:
    say(f"The hub is gone ({reason}); waiting for it to come back.")
