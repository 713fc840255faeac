"""HTTP for the first page of the administration: findings of the doctor, and plots of a day."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime

from fastapi import Response

import hublet
from hublet.core.clock import now
from hublet.core.dataclasses import dataclass
from hublet.core.metric_samples import KEPT, MetricPoint, list_points
from hublet.core.pages import PageRouter, bytes_text, count_text, latency_text
from hublet.doctor import HubExamination
from hublet.web.admin import admin_frame
from hublet.web.auth import OperatorVisit, PageVisit
from hublet.web.pages import render
from hublet.web.rendering.plots import Plot, Series, draw_plot

router = PageRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The process and the machine that answer."""

    version: str
    engine: str
    started_at: datetime
    database_bytes: int
    disk_bytes: int
    free_bytes: int


@router.get("/admin")
async def get_admin_page(visit: OperatorVisit) -> Response:
    examination: HubExamination = visit.request.app.state.examination
    report = await examination.report()
    machine = await _describe_machine(visit)
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, "/admin")
        points = await list_points(conn)
    return await render(
        visit,
        "admin/overview.html",
        frame=frame,
        report=report,
        machine=machine,
        plots=draw_day(points, end=now()) if points else (),
    )


async def _describe_machine(visit: PageVisit) -> Machine:
    database = visit.database
    folder = visit.settings.database.data_dir
    disk = await asyncio.to_thread(shutil.disk_usage, folder)
    return Machine(
        version=hublet.__version__,
        engine={"sqlite": "SQLite", "postgresql": "PostgreSQL"}.get(database.kind, database.kind),
        started_at=visit.request.app.state.started_at,
        database_bytes=await database.size(),
        disk_bytes=disk.total,
        free_bytes=disk.free,
    )


def draw_day(points: Sequence[MetricPoint], *, end: datetime) -> list[Plot]:
    """Draw what the processes of the hub counted in the last day."""

    def line(label: str, value: Callable[[MetricPoint], float | None], tone: str = "") -> Series:
        known = [(each.at, found) for each in points if (found := value(each)) is not None]
        return Series(label=label, points=known, tone=tone)

    def plot(title: str, *lines: Series, text: Callable[[float], str] = count_text) -> Plot:
        return draw_plot(title, lines, start=end - KEPT, end=end, text=text)

    return [
        plot("Requests per second", line("Requests", lambda each: each.requests_per_second)),
        plot(
            "Answered with an error of the hub",
            line("Errors", lambda each: each.error_percent, "bad"),
            text=lambda percent: f"{percent:.3g} %",
        ),
        plot(
            "Time to answer",
            line("Half within", lambda each: each.median_seconds),
            line("99 of 100 within", lambda each: each.slow_seconds, "warn"),
            text=latency_text,
        ),
        plot(
            "Deliveries of webhooks",
            line("Delivered", lambda each: each.delivered, "ok"),
            line("Failed", lambda each: each.failed, "bad"),
        ),
        plot(
            "Jobs",
            line("Running", lambda each: each.jobs_running),
            line("Waiting", lambda each: each.jobs_waiting, "warn"),
        ),
        plot(
            "Tasks",
            line("Waiting", lambda each: each.tasks_waiting + each.events_waiting),
            line("Parked", lambda each: each.tasks_parked, "bad"),
        ),
        plot("Database", line("Size", lambda each: each.database_bytes), text=bytes_text),
    ]
