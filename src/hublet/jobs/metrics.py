"""Metrics of jobs: the usage of one as a stream, and the gauge of stages for the operator."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from prometheus_client import CollectorRegistry, Gauge

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Database, Reader
from hublet.core.http.event_streams import CheckAccess
from hublet.core.schema import Schema
from hublet.jobs import hardware, store
from hublet.jobs.records import Flavor, MeasuredAttempt, Stage, Usage

KEEP_ALIVE_SECONDS = 30.0
_PERIOD_SECONDS = 1.0
_NO_USAGE = Usage(cpu_millicores=0, memory_bytes=0)
_UNKNOWN_SIZE = FlavorSize(name="", cores=1, memory_bytes=2**30)

# Measures an attempt, by the name of its runner and its handle; None: nobody can tell right now.
Meter = Callable[[str, str], Awaitable[Usage | None]]


class GpuMetric(Schema):
    utilization: float
    memory_used_bytes: int
    memory_total_bytes: int


class JobMetric(Schema):
    """What a job uses at a moment, and what it may use."""

    # Of all its cores together.
    cpu_usage_pct: float
    # What it may use.
    cpu_millicores: int
    memory_used_bytes: int
    memory_total_bytes: int
    # Bits.
    rx_bps: int
    tx_bps: int
    gpus: dict[str, GpuMetric]
    replica: str


async def follow_metrics(
    database: Database,
    job_id: str,
    *,
    meter: Meter,
    check_access: CheckAccess,
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield a measurement each second while the job runs, until it is over.

    The access is checked with each keep-alive.
    """
    alive_at = monotonic()
    while not stopping.is_set():
        began_at = monotonic()
        async with database.read() as conn:
            job = await store.find_measured_attempt(conn, job_id)
        if job is None or job.stage.is_terminal:
            return
        if job.stage is Stage.running:
            metric = await measure(job, database.hub.settings, meter)
            yield f"event: metric\ndata: {metric.model_dump_json()}\n\n"
        if monotonic() >= alive_at + KEEP_ALIVE_SECONDS:
            await check_access()
            yield ": keep-alive\n\n"
            alive_at = monotonic()
        await asyncio.sleep(max(0.0, began_at + _PERIOD_SECONDS - monotonic()))


async def measure(job: MeasuredAttempt, settings: Settings, meter: Meter) -> JobMetric:
    """Return what a job uses; zero when nobody can tell, because the client waits for each one."""
    usage: Usage | None = None
    if job.runner is not None and job.handle is not None:
        usage = await meter(job.runner, job.handle)
    usage = usage or _NO_USAGE
    size = flavor_size(job.flavor, settings)
    millicores = max(1, round(size.cores * 1000))
    return JobMetric(
        cpu_usage_pct=round(100 * usage.cpu_millicores / millicores, 1),
        cpu_millicores=millicores,
        memory_used_bytes=usage.memory_bytes,
        memory_total_bytes=max(1, size.memory_bytes),
        rx_bps=usage.received_per_second * 8,
        tx_bps=usage.sent_per_second * 8,
        gpus={},
        replica=f"{job.job_id[-5:]}-{job.attempt}",
    )


def flavor_size(flavor: Flavor, settings: Settings) -> FlavorSize:
    """Return the size of a flavor; one that is not offered any more may still have jobs that run."""
    return hardware.offered_flavors(settings).get(flavor, _UNKNOWN_SIZE)


class JobGauge:
    """Prometheus gauge of jobs by stage, counted when the metrics are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauge = Gauge("hublet_jobs", "Jobs by stage.", ["stage"], registry=registry)

    async def count(self, conn: Reader) -> None:
        counts = await store.count_by_stage(conn)
        for stage in Stage:
            self._gauge.labels(stage).set(counts.get(stage, 0))
