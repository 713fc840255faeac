"""Metrics of jobs: the usage of one as a stream and as it is kept, and the gauge of stages.

The history of a job is a file beside its log, with a sample for each 5 seconds of the last 8 hours: a
ring of slots, one for each period since the first sample. The place of a slot is its time, so a sample
needs 11 bytes, a history at most 64 kB, and a hub that starts again goes on in it. Its functions
block: call them in a thread.
"""

import asyncio
import math
import os
import struct
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge

from hublet.core.clock import from_micros, monotonic
from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.schema import Schema
from hublet.jobs import hardware, statistics_store, store
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.logs.source import JobLog, StoredLog
from hublet.jobs.records import Flavor, MeasuredAttempt, Meter, Stage, Usage

if TYPE_CHECKING:
    from hublet.core.http.event_streams import CheckAccess

KEEP_ALIVE_SECONDS = 30.0
_PERIOD_SECONDS = 1.0
_NO_USAGE = Usage(cpu_millicores=0, memory_bytes=0)
_UNKNOWN_SIZE = FlavorSize(name="", cores=1, memory_bytes=2**30)

PERIOD_SECONDS = 5
SLOTS = 8 * 3600 // PERIOD_SECONDS

_MARK = b"use1"
# The mark, the second of the first sample, the number of the last period, and the limits.
_HEADER = struct.Struct("<4sQIIQ")
# Processor, memory, disk, received, sent, and the processor of the graphics cards.
_SLOT = struct.Struct("<HHHHHB")
_EMPTY = bytes(_SLOT.size)
_SECOND = 1_000_000
# Values are kept as logarithms: 16 bits reach beyond any size, to less than a thousandth.
_STEPS = 1000
_MOST = 2**16 - 1


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
    check_access: "CheckAccess",
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
    usage = await meter(job) or _NO_USAGE
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageLimits:
    """What a job may use."""

    cpu_millicores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySample:
    at: datetime
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHistory:
    """What a job used, oldest first, and what it may use."""

    limits: UsageLimits
    samples: tuple[HistorySample, ...]


def history_path(data_dir: Path, job_id: str) -> Path:
    return job_folder(data_dir, job_id) / "usage"


def append_sample(path: Path, usage: Usage, limits: UsageLimits, *, at: int) -> None:
    """Keep a sample of a moment in microseconds; one of an earlier period than the last is skipped."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        second = at // _SECOND
        header = _read_header(file)
        start, last = (second, -1) if header is None else (header[1], header[2])
        period = (second - start) // PERIOD_SECONDS
        if period < last:
            return
        # What the ring has there is eight hours old.
        for missed in range(max(last + 1, period - SLOTS + 1), period):
            os.pwrite(file, _EMPTY, _place(missed))
        os.pwrite(file, _pack(usage), _place(period))
        # Last: a hub that dies before it has lost one sample.
        fields = (_MARK, start, period, limits.cpu_millicores, limits.memory_bytes)
        os.pwrite(file, _HEADER.pack(*fields), 0)
    finally:
        os.close(file)


def read_history(path: Path) -> UsageHistory | None:
    """Return what was kept; None: nothing was, or the file is no history."""
    try:
        return parse_history(path.read_bytes())
    except FileNotFoundError:
        return None


def find_history(path: Path, log: JobLog) -> UsageHistory | None:
    """Return what was kept by this machine, or in the shared store beside the log."""
    kept = read_history(path)
    if kept is not None or not isinstance(log, StoredLog) or log.usage_key is None:
        return kept
    try:
        return parse_history(log.store.read(log.usage_key))
    except FileNotFoundError:
        # A newer one has taken its place just now.
        return None


def parse_history(data: bytes) -> UsageHistory | None:
    header, slots = _parse_header(data), data[_HEADER.size :]
    if header is None:
        return None
    _mark, start, last, millicores, memory = header
    kept = (
        (period, slots[at : at + _SLOT.size])
        for period in range(max(0, last - SLOTS + 1), last + 1)
        if (at := period % SLOTS * _SLOT.size) + _SLOT.size <= len(slots)
    )
    samples = tuple(
        HistorySample(
            at=from_micros((start + period * PERIOD_SECONDS) * _SECOND), usage=_unpack(slot)
        )
        for period, slot in kept
        if slot != _EMPTY
    )
    limits = UsageLimits(cpu_millicores=millicores, memory_bytes=memory)
    return UsageHistory(limits=limits, samples=samples)


def _read_header(file: int) -> tuple[bytes, int, int, int, int] | None:
    return _parse_header(os.pread(file, _HEADER.size, 0))


def _parse_header(head: bytes) -> tuple[bytes, int, int, int, int] | None:
    if len(head) < _HEADER.size or not head.startswith(_MARK):
        return None
    mark, start, last, millicores, memory = _HEADER.unpack_from(head)
    return mark, start, last, millicores, memory


def _place(period: int) -> int:
    return _HEADER.size + period % SLOTS * _SLOT.size


def _pack(usage: Usage) -> bytes:
    return _SLOT.pack(
        _logarithm(usage.cpu_millicores),
        # A slot of zeros is one without a sample, and whatever runs has memory.
        max(1, _logarithm(usage.memory_bytes)),
        _logarithm(usage.disk_per_second),
        _logarithm(usage.received_per_second),
        _logarithm(usage.sent_per_second),
        0 if usage.gpu_percent is None else 1 + min(100, max(0, round(usage.gpu_percent))),
    )


def _unpack(slot: bytes) -> Usage:
    cpu, memory, disk, received, sent, gpu = _SLOT.unpack(slot)
    return Usage(
        cpu_millicores=_value(cpu),
        memory_bytes=_value(memory),
        disk_per_second=_value(disk),
        received_per_second=_value(received),
        sent_per_second=_value(sent),
        gpu_percent=gpu - 1 if gpu else None,
    )


def _logarithm(value: int) -> int:
    return min(_MOST, round(math.log2(1 + max(0, value)) * _STEPS))


def _value(logarithm: int) -> int:
    return round(2 ** (logarithm / _STEPS) - 1)


class JobGauge:
    """Prometheus gauge of jobs by stage, counted when the metrics are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauge = Gauge("hublet_jobs", "Jobs by stage.", ["stage"], registry=registry)

    async def count(self, conn: Reader) -> None:
        counts = await statistics_store.count_by_stage(conn)
        for stage in Stage:
            self._gauge.labels(stage).set(counts.get(stage, 0))
