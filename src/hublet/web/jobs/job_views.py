"""View of a job: why it is as it is, its figures and its plots, as the template shows them."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit

from hublet.core.clock import now, wire
from hublet.core.config import Settings
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.pages import bytes_text, plural
from hublet.jobs import service
from hublet.jobs.access import JobAccess
from hublet.jobs.addresses import port_address, ssh_address
from hublet.jobs.logs.lines import LogLine
from hublet.jobs.metrics import UsageHistory, flavor_size
from hublet.jobs.presenter import render
from hublet.jobs.records import InitiatorType, JobHistory, JobRecord, Mount, PastAttempt, Stage
from hublet.jobs.schemas import Job
from hublet.jobs.stages import TIMEOUT
from hublet.web.jobs.list_views import duration_text
from hublet.web.rendering import ansi
from hublet.web.rendering.plots import Plot, Series, draw_plot

# The look of a badge for each stage.
_TONES = {Stage.running: "ok", Stage.completed: "ok", Stage.error: "bad", Stage.scheduling: "info"}
# What the last words of a program that fails look like.
_FAILURE = re.compile(
    r"\b(\w*Error|\w*Exception|error|fatal|failed|panic(ked)?|killed|segmentation fault"
    r"|out of memory|no such file|not found|denied)\b",
    re.IGNORECASE,
)
# What the hub itself writes into a log.
NOTICE = re.compile("=====.*=====")
_LONGEST_QUOTE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReason:
    """Why a job is as it is, in words, and the line of its log that says more."""

    text: str
    # "", "good", "warn" or "bad".
    tone: str = ""
    advice: str = ""
    line: int = 0
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigure:
    label: str
    text: str
    href: str | None = None
    # Since when it grows by itself.
    since: str | None = None
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPort:
    number: int
    url: str
    is_public: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeak:
    """When a job used most memory."""

    at: datetime
    text: str

    @property
    def moment(self) -> str:
        return wire(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """Everything but the log; `path` is the address of the page."""

    job: JobRecord
    path: str
    owner: str
    title: str
    stage: str
    tone: str
    reason: JobReason | None
    figures: tuple[JobFigure, ...]
    history: JobHistory
    ports: tuple[JobPort, ...]
    ssh: str | None
    volumes: tuple[tuple[Mount, str], ...]
    # How large its hardware is.
    size: str
    may_change: bool
    form_token: str

    @property
    def is_over(self) -> bool:
        return self.job.stage.is_terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedJob:
    """A job as its viewer may see it, with what belongs to it."""

    job: JobRecord
    access: JobAccess
    shown: Job
    history: JobHistory
    may_change: bool


async def get_viewed_job(conn: Reader, access: JobAccess, job_id: str) -> ViewedJob:
    """Return a job; JobNotFound: there is none, or the viewer may not see it."""
    job = await service.get(conn, access, job_id)
    return ViewedJob(
        job=job,
        access=access,
        shown=await render(conn, access, job),
        history=await service.get_history(conn, job),
        may_change=await service.may_change(conn, access, job),
    )


def view_of(
    viewed: ViewedJob, settings: Settings, *, tail: Sequence[LogLine], form_token: str
) -> JobView:
    """Return what the page shows; `tail` are the last lines of the log."""
    job, owner = viewed.job, viewed.access.owner.name
    return JobView(
        job=job,
        path=f"/jobs/{owner}/{job.id}",
        owner=owner,
        title=job.labels.get("name") or f"Job {job.id[-8:]}",
        stage="Canceling" if _is_being_canceled(job) else job.stage.capitalize(),
        tone=_TONES.get(job.stage, ""),
        reason=reason_of(job, settings, tail),
        figures=_figures_of(viewed, settings),
        history=viewed.history,
        ports=_ports_of(job, settings),
        ssh=_ssh_command(job, settings),
        volumes=tuple((mount, _volume_path(mount)) for mount in job.spec.mounts),
        size=_size_text(job, settings),
        may_change=viewed.may_change,
        form_token=form_token,
    )


def _is_being_canceled(job: JobRecord) -> bool:
    return job.cancel_requested_at is not None and not job.stage.is_terminal


# ---------------------------------------------------------------- why


def reason_of(job: JobRecord, settings: Settings, tail: Sequence[LogLine]) -> JobReason | None:
    """Return why a job waits or ended; None when there is nothing to say beyond its stage."""
    message = (job.message or "").rstrip(".")
    if job.stage is Stage.error:
        line = failing_line(tail)
        return JobReason(
            text=_failure_text(job, message, settings),
            tone="bad",
            advice=_advice_on(message),
            line=line.number if line else 0,
            quote=ansi.plain_text(line.text)[:_LONGEST_QUOTE] if line else "",
        )
    if job.stage is Stage.canceled:
        why = job.cancel_reason or message
        return JobReason(text=f"It was canceled: {why}." if why else "It was canceled.")
    if job.stage is Stage.deleted:
        return JobReason(text="It was deleted, with everything that it printed.")
    if job.stage is Stage.scheduling:
        return JobReason(text=f"It waits: {message}." if message else "It waits for its turn.")
    return JobReason(text=f"{message.capitalize()}.", tone="warn") if message else None


def _failure_text(job: JobRecord, message: str, settings: Settings) -> str:
    if message == TIMEOUT:
        limit = job.spec.timeout_seconds or settings.jobs.timeout_seconds
        return f"It was ended because it ran longer than its limit of {duration_text(limit)}."
    attempts = job.spec.attempts
    tries = f" after {plural(attempts, 'attempt')}" if attempts > 1 else ""
    return f"It failed{tries}: {message}." if message else f"It failed{tries}."


def _advice_on(message: str) -> str:
    if message == TIMEOUT:
        return "Run it again with a longer timeout."
    if message.startswith("out of memory"):
        return "Run it again on hardware with more memory, or let it use less."
    return ""


def failing_line(tail: Sequence[LogLine]) -> LogLine | None:
    """Return the line that most probably says why a job failed: the last that looks like it."""
    said = [line for line in tail if line.text.strip() and not NOTICE.fullmatch(line.text)]
    failures = [line for line in said if _FAILURE.search(line.text)]
    return next(reversed(failures), None) or next(reversed(said), None)


# ---------------------------------------------------------------- figures


def _figures_of(viewed: ViewedJob, settings: Settings) -> tuple[JobFigure, ...]:
    job, shown = viewed.job, viewed.shown
    attempts = viewed.history.attempts
    attempt = next((each for each in attempts if each.number == job.attempt), None)
    return (
        _duration_figure(job, shown),
        _deadline_figure(job, attempt, settings),
        JobFigure(label="Attempt", text=f"{job.attempt} of {job.spec.attempts}"),
        JobFigure(label="Hardware", text=job.spec.flavor),
        _starter_figure(job, viewed.access, shown.createdBy.name),
        _source_figure(job),
    )


def _duration_figure(job: JobRecord, shown: Job) -> JobFigure:
    seconds = shown.durations.runningSecs
    if job.stage is Stage.scheduling and not seconds:
        waited = duration_text(shown.durations.totalSecs)
        return JobFigure(label="Waits for", text=waited, since=wire(job.created_at))
    is_running = job.stage is Stage.running
    since = wire(now() - timedelta(seconds=seconds)) if is_running else None
    label = "Runs for" if is_running else "Ran for"
    return JobFigure(label=label, text=duration_text(seconds), since=since)


def _deadline_figure(job: JobRecord, attempt: PastAttempt | None, settings: Settings) -> JobFigure:
    limit = job.spec.timeout_seconds or settings.jobs.timeout_seconds
    started = attempt.started_at if attempt else None
    if job.stage is not Stage.running or started is None:
        return JobFigure(label="Deadline", text=f"after {duration_text(limit)}")
    left = (started + timedelta(seconds=limit) - now()).total_seconds()
    return JobFigure(label="Deadline", text=f"in {duration_text(left)}" if left > 0 else "now")


def _starter_figure(job: JobRecord, access: JobAccess, creator: str) -> JobFigure:
    owner, starter, label = access.owner.name, job.initiator, "Started by"
    if starter.type is InitiatorType.scheduled_job:
        href = f"/jobs/{owner}/scheduled/{starter.id}"
        return JobFigure(label=label, text="a schedule", href=href)
    if starter.type is InitiatorType.duplicated_job:
        return JobFigure(label="Copy of", text=starter.id[-8:], href=f"/jobs/{owner}/{starter.id}")
    if starter.type is InitiatorType.webhook:
        place = f"/organizations/{owner}" if access.owner.is_organization else ""
        href = f"{place}/settings/webhooks/{starter.id}"
        return JobFigure(label=label, text="a webhook", href=href)
    return JobFigure(label=label, text=creator, href=f"/{quote(creator)}")


def _source_figure(job: JobRecord) -> JobFigure:
    if space := job.spec.space:
        return JobFigure(label="Space", text=space, href=f"/spaces/{quote(space)}", is_code=True)
    return JobFigure(label="Image", text=job.spec.image or "", is_code=True)


def _ports_of(job: JobRecord, settings: Settings) -> tuple[JobPort, ...]:
    if job.expose is None or job.stage.is_terminal:
        return ()
    return tuple(
        JobPort(
            number=port,
            url=port_address(job.id, port, settings),
            is_public=port in job.expose.public,
        )
        for port in job.expose.ports
    )


def _ssh_command(job: JobRecord, settings: Settings) -> str | None:
    address = None if job.stage.is_terminal else ssh_address(job, settings)
    if address is None:
        return None
    parts = urlsplit(address)
    port = f"-p {parts.port} " if parts.port else ""
    return f"ssh {port}{parts.username}@{parts.hostname}"


def _size_text(job: JobRecord, settings: Settings) -> str:
    size = flavor_size(job.spec.flavor, settings)
    return f"{size.cores:g} vCPU, {bytes_text(size.memory_bytes)}"


def _volume_path(mount: Mount) -> str:
    prefix = {"bucket": "/buckets", "model": ""}.get(mount.type, f"/{mount.type}s")
    return f"{prefix}/{quote(mount.source)}"


# ---------------------------------------------------------------- plots


def draw_plots(history: UsageHistory | None) -> tuple[Plot, ...]:
    """Draw what was kept of a job's usage; what it never used, or nobody measured, has no plot."""
    if history is None or not history.samples:
        return ()
    samples, limits = history.samples, history.limits
    start, end = samples[0].at, samples[-1].at

    def series(label: str, name: str, *, tone: str = "") -> Series:
        points = [(each.at, float(getattr(each.usage, name) or 0)) for each in samples]
        return Series(label=label, points=points, tone=tone)

    def has(*names: str) -> bool:
        return any(getattr(each.usage, name) for each in samples for name in names)

    cores = series("Processor", "cpu_millicores")
    plots = [
        draw_plot(
            "Processor",
            [cores],
            start=start,
            end=end,
            limit=limits.cpu_millicores,
            text=_percent_of_core,
        ),
        draw_plot(
            "Memory",
            [series("Memory", "memory_bytes")],
            start=start,
            end=end,
            limit=limits.memory_bytes,
            text=bytes_text,
        ),
    ]
    if any(each.usage.gpu_percent is not None for each in samples):
        cards = series("Graphics card", "gpu_percent")
        plots.append(
            draw_plot("Graphics card", [cards], start=start, end=end, limit=100, text=_percent)
        )
    if has("disk_per_second"):
        disk = series("Disk", "disk_per_second")
        plots.append(draw_plot("Disk", [disk], start=start, end=end, text=_rate_text))
    if has("received_per_second", "sent_per_second"):
        both = [
            series("Received", "received_per_second"),
            series("Sent", "sent_per_second", tone="ok"),
        ]
        plots.append(draw_plot("Network", both, start=start, end=end, text=_rate_text))
    return tuple(plots)


def memory_peak(history: UsageHistory | None) -> MemoryPeak | None:
    if history is None or not history.samples:
        return None
    highest = max(history.samples, key=lambda each: each.usage.memory_bytes)
    limit = bytes_text(history.limits.memory_bytes)
    return MemoryPeak(at=highest.at, text=f"{bytes_text(highest.usage.memory_bytes)} of {limit}")


def _percent_of_core(millicores: float) -> str:
    return f"{millicores / 10:.0f} %"


def _percent(value: float) -> str:
    return f"{value:.0f} %"


def _rate_text(value: float) -> str:
    return f"{bytes_text(value)}/s"
