"""Rows of jobs in a list: stage, duration, what started them, and which buttons they have."""

import shlex
from collections.abc import Sequence

from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.jobs import service, statistics_store
from hublet.jobs.access import JobAccess, get_access
from hublet.jobs.presenter import render_all
from hublet.jobs.records import JOBS, InitiatorType, JobRecord, Spec, Stage
from hublet.web.auth import PageVisit
from hublet.web.live import LiveKind

# The stages of the jobs of an owner, by its id.
JOBS_OF_OWNER = LiveKind(channel=JOBS, read_versions=statistics_store.versions_of_owners)

# The look of a badge for each stage.
_TONES = {Stage.scheduling: "info", Stage.running: "ok", Stage.completed: "ok", Stage.error: "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOwnerPage:
    """What every page on the jobs of an owner knows: whose they are, and the token of its forms."""

    access: JobAccess
    form_token: str

    @property
    def name(self) -> str:
        return self.access.owner.name

    @property
    def path(self) -> str:
        return f"/jobs/{self.name}"


async def get_owner_page(conn: Reader, visit: PageVisit, owner: str) -> JobOwnerPage:
    """Return the page of an owner's jobs; NamespaceNotFound: the viewer has no access."""
    access = await get_access(conn, visit.person, owner)
    return JobOwnerPage(access=access, form_token=visit.form_token(purpose_of(access)))


def purpose_of(access: JobAccess) -> str:
    """Return what all forms on the jobs of an owner are for."""
    return f"jobs of {access.owner.id}"


async def stream_of(conn: Reader, head: JobOwnerPage) -> str:
    """Return the address of the stream of a page on these jobs; read it before what is shown."""
    owner_id = head.access.owner.id
    versions = await statistics_store.versions_of_owners(conn, [owner_id])
    return f"{head.path}/events?since={versions[owner_id]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarter:
    """What started a job: a person, a schedule, a webhook, or the job that it is a copy of."""

    text: str
    href: str
    icon: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    job: JobRecord
    path: str
    title: str
    command: str
    tone: str
    # In words; None: it has not begun.
    duration: str | None
    starter: JobStarter
    # The person in whose name it runs.
    creator: str
    may_change: bool

    @property
    def source(self) -> str:
        return self.job.spec.image or f"spaces/{self.job.spec.space}"

    @property
    def tags(self) -> list[tuple[str, str]]:
        """The labels but the name, each as it is shown and as the filter of the list takes it."""
        labels = self.job.labels.items()
        return [
            (f"{name}={value}" if value else name, f"{name}={value}")
            for name, value in labels
            if name != "name"
        ]


async def job_rows(conn: Reader, access: JobAccess, jobs: Sequence[JobRecord]) -> list[JobRow]:
    changeable = await service.list_changeable(conn, access, jobs)
    rendered = await render_all(conn, access, jobs)
    return [
        JobRow(
            job=job,
            path=f"/jobs/{access.owner.name}/{job.id}",
            title=job.labels.get("name") or f"Job {job.id[-8:]}",
            command=command_line(job.spec),
            tone=_TONES.get(job.stage, ""),
            duration=duration_text(shown.durations.runningSecs) if job.started_at else None,
            starter=_starter_of(job, access, shown.createdBy.name),
            creator=shown.createdBy.name,
            may_change=job.id in changeable,
        )
        for job, shown in zip(jobs, rendered, strict=True)
    ]


def command_line(spec: Spec) -> str:
    """Return what a job runs as one line of a shell; empty: what its image or space says."""
    return shlex.join([*(spec.command or ()), *(spec.arguments or ())])


def duration_text(seconds: float) -> str:
    """Write a duration as people say it: `8 s`, `3 min 20 s`, `2 h 5 min`, `7 d`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count) or "0 s"


def _starter_of(job: JobRecord, access: JobAccess, creator: str) -> JobStarter:
    owner, by = access.owner.name, job.initiator
    place = f"/organizations/{owner}" if access.owner.is_organization else ""
    return {
        InitiatorType.user: JobStarter(text=creator, href=f"/{creator}", icon="user"),
        InitiatorType.scheduled_job: JobStarter(
            text="schedule", href=f"/jobs/{owner}/scheduled/{by.id}", icon="clock"
        ),
        InitiatorType.duplicated_job: JobStarter(
            text="copy", href=f"/jobs/{owner}/{by.id}", icon="copy"
        ),
        InitiatorType.webhook: JobStarter(
            text="webhook", href=f"{place}/settings/webhooks/{by.id}", icon="webhook"
        ),
    }[by.type]
