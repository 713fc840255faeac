"""Samples of the metrics: one for each process and minute, kept for a day, for the hub's own plots."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
from prometheus_client.samples import Sample

from hublet.core.clock import from_micros, micros, now, to_micros
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.core.metrics import BUCKETS, Metrics

log = get_logger("metrics")

KEPT = timedelta(days=1)
# A point of a plot stands for so long: a day has 240 of them.
STEP = timedelta(minutes=6)
_MINUTE = timedelta(minutes=1)
_MINUTE_MICROS = 60_000_000
_SERVER_ERROR = 500
# The numbers that are kept, by how the registry calls them. Counters are kept as their growth.
_LEVELS = {
    "hublet_outbox_waiting": "events_waiting",
    "hublet_tasks_waiting": "tasks_waiting",
    "hublet_tasks_parked": "tasks_parked",
    "hublet_database_bytes": "database_bytes",
}


class MetricSample(msgspec.Struct, frozen=True, kw_only=True):
    """What one process counted in a minute, and the levels of the hub at its end."""

    requests: int = 0
    # Requests that were answered with 500 or more.
    errors: int = 0
    # Requests by the time that they took: one count for each of BUCKETS, and one for longer ones.
    latencies: tuple[int, ...] = ()
    delivered: int = 0
    failed: int = 0
    events_waiting: int = 0
    tasks_waiting: int = 0
    tasks_parked: int = 0
    jobs_running: int = 0
    jobs_waiting: int = 0
    database_bytes: int = 0


def read_metrics(metrics: Metrics) -> MetricSample:
    """Return the numbers as they stand in the registry, since the start of the process."""
    values: dict[str, int] = {}
    cumulated: list[int] = []
    for metric in metrics.registry.collect():
        for each in metric.samples:
            if each.name == "hublet_request_seconds_bucket":
                cumulated.append(int(each.value))
            for name in _names_of(each):
                values[name] = values.get(name, 0) + int(each.value)
    latencies = tuple(after - before for before, after in pairwise([0, *cumulated]))
    return MetricSample(latencies=latencies, **values)


def _names_of(sample: Sample) -> Iterator[str]:
    """Return what a number of the registry counts for."""
    match sample.name, sample.labels:
        case "hublet_requests_total", {"status": status}:
            yield "requests"
            if int(status) >= _SERVER_ERROR:
                yield "errors"
        case "hublet_webhook_deliveries_total", {"outcome": "delivered" | "failed" as outcome}:
            yield outcome
        case "hublet_jobs", {"stage": "RUNNING"}:
            yield "jobs_running"
        case "hublet_jobs", {"stage": "SCHEDULING"}:
            yield "jobs_waiting"
        case name, _ if name in _LEVELS:
            yield _LEVELS[name]


def growth(before: MetricSample, after: MetricSample) -> MetricSample:
    """Return what was counted in between; levels are those of the end."""
    earlier = before.latencies or (0,) * len(after.latencies)
    return msgspec.structs.replace(
        after,
        requests=after.requests - before.requests,
        errors=after.errors - before.errors,
        delivered=after.delivered - before.delivered,
        failed=after.failed - before.failed,
        latencies=tuple(new - old for new, old in zip(after.latencies, earlier, strict=True)),
    )


class MetricSampler:
    """Writes the samples of one process, each minute; `name` is that of the process alone."""

    def __init__(self, database: Database, metrics: Metrics, *, name: str) -> None:
        self._database = database
        self._metrics = metrics
        self._name = name
        self._before = MetricSample()
        self._sampling: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._sampling = asyncio.create_task(self._keep_sampling(), name="metric-samples")

    async def stop(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()
            with suppress(asyncio.CancelledError):
                await self._sampling

    async def sample(self) -> None:
        """Write what was counted since the last time, and drop what is older than a day."""
        await self._metrics.refresh(self._database)
        current = read_metrics(self._metrics)
        counted, self._before = growth(self._before, current), current
        async with self._database.transaction() as conn:
            await _add(conn, self._name, counted)
            await _remove_old(conn)

    async def _keep_sampling(self) -> None:
        while True:
            await asyncio.sleep((_MINUTE_MICROS - micros() % _MINUTE_MICROS) / 1e6)
            try:
                await self.sample()
            except DatabaseUnavailable as error:
                log.warning("metrics not sampled", reason=error.reason)


async def _add(conn: Connection, process: str, sample: MetricSample) -> None:
    await conn.execute(
        """
        INSERT INTO metric_samples (process, at, body) VALUES ($1, $2, $3)
        ON CONFLICT (at, process) DO UPDATE SET body = excluded.body
        """,
        process, micros() // _MINUTE_MICROS * _MINUTE_MICROS, msgspec.json.encode(sample).decode(),
    )  # fmt: skip


async def _remove_old(conn: Connection) -> None:
    await conn.execute("DELETE FROM metric_samples WHERE at < $1", to_micros(now() - KEPT))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPoint:
    """What all processes together counted in a step of time."""

    at: datetime
    requests_per_second: float
    # Of 100 requests.
    error_percent: float
    # Seconds in which half, and 99 of 100, of the requests were answered; None without any.
    median_seconds: float | None
    slow_seconds: float | None
    delivered: int
    failed: int
    # Levels at their highest.
    events_waiting: int
    tasks_waiting: int
    tasks_parked: int
    jobs_running: int
    jobs_waiting: int
    database_bytes: int


async def list_points(conn: Reader) -> list[MetricPoint]:
    """Return the last day, oldest first; steps in which no process ran are missing."""
    rows = await conn.fetch_all(
        "SELECT at, body FROM metric_samples WHERE at >= $1 ORDER BY at", to_micros(now() - KEPT)
    )
    decoder = msgspec.json.Decoder(MetricSample)
    step = STEP // timedelta(microseconds=1)
    steps: dict[int, dict[int, list[MetricSample]]] = {}
    for at, body in rows:
        minutes = steps.setdefault(at // step * step, {})
        minutes.setdefault(at, []).append(decoder.decode(body))
    return [_point_of(from_micros(start), minutes) for start, minutes in steps.items()]


def _point_of(start: datetime, minutes: dict[int, list[MetricSample]]) -> MetricPoint:
    samples = [sample for each in minutes.values() for sample in each]
    requests = sum(each.requests for each in samples)
    errors = sum(each.errors for each in samples)
    counted = [each.latencies for each in samples if each.latencies]
    latencies = [sum(counts) for counts in zip(*counted, strict=True)]
    return MetricPoint(
        at=start,
        requests_per_second=requests / (len(minutes) * _MINUTE.total_seconds()),
        error_percent=100 * errors / requests if requests else 0,
        median_seconds=quantile(latencies, 0.5),
        slow_seconds=quantile(latencies, 0.99),
        delivered=sum(each.delivered for each in samples),
        failed=sum(each.failed for each in samples),
        events_waiting=_highest(each.events_waiting for each in samples),
        tasks_waiting=_highest(each.tasks_waiting for each in samples),
        tasks_parked=_highest(each.tasks_parked for each in samples),
        jobs_running=_highest(each.jobs_running for each in samples),
        jobs_waiting=_highest(each.jobs_waiting for each in samples),
        database_bytes=_highest(each.database_bytes for each in samples),
    )


def _highest(values: Iterable[int]) -> int:
    return max(values, default=0)


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return the time in seconds within which this share was answered, as Prometheus reckons it.

    Within a bucket it is in proportion; what took longer than all buckets counts as the last one.
    """
    wanted = sum(counts) * share
    if not wanted:
        return None
    below = 0
    for (start, end), count in zip(pairwise((0.0, *BUCKETS)), counts, strict=False):
        if below + count >= wanted:
            return start + (end - start) * (wanted - below) / count
        below += count
    return BUCKETS[-1]
