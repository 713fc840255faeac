"""A job as a person sees it."""

from typing import TYPE_CHECKING

from hublet.cli.output import Answer, Table, aligned, cell, painted, read_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hublet.client.jobs import Job

_COLOURS = {"COMPLETED": "green", "ERROR": "red", "RUNNING": "cyan"}


def table(jobs: "Sequence[Job]") -> Table:
    return Table(
        rows=[row(job) for job in jobs],
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


def row(job: "Job") -> dict[str, object]:
    words = [*job.get("command", []), *job.get("arguments", [])]
    return {
        "id": job["id"],
        "name": job["labels"].get("name"),
        "runs": " ".join([what(job), *words]),
        "createdAt": read_moment(job["createdAt"]),
        "stage": job["status"]["stage"],
        "seconds": round(job["durations"]["runningSecs"]),
    }


def what(job: "Job") -> str:
    return job.get("dockerImage") or f"spaces/{job['spaceId']}"


def details(job: "Job") -> Answer:
    status = job["status"]
    shown = {
        "id": job["id"],
        "owner": job["owner"]["name"],
        **{name: row(job)[name] for name in ("name", "runs")},
        "flavor": job["flavor"],
        "stage": status["stage"],
        "message": status["message"],
        "failures": status["failureCount"],
        "created": read_moment(job["createdAt"]),
        "started": read_moment(job.get("startedAt")),
        "finished": read_moment(job.get("finishedAt")),
        "secrets": list(job.get("secrets", {})),
        "ports": status.get("exposeUrls", []),
        "ssh": status.get("sshUrl"),
    }
    lines = aligned([[name, cell(value)] for name, value in shown.items()], width=None)
    return Answer(data=job, text="\n".join(lines))


def outcome(job: "Job") -> Answer:
    """Tell how a job ended; only COMPLETED is success."""
    status = job["status"]
    message = f": {status['message']}" if status["message"] else "."
    stage = painted(status["stage"], colour=_COLOURS.get(status["stage"]))
    return Answer(
        data=job,
        words=f"The job {job['id']} is {stage}{cell(message) if message != '.' else message}",
        failed=status["stage"] != "COMPLETED",
    )
