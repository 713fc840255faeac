"""Usage history of a job: a file beside its log, with a sample for each 5 seconds of the last 8 hours.

The file is a ring of slots, one for each period since the first sample. The place of a slot is its
time, so a sample needs 11 bytes, a history at most 64 kB, and a hub that starts again goes on in it.
All of it blocks: call it in a thread.
"""

import math
import os
import struct
from datetime import datetime
from pathlib import Path

from hublet.core.clock import from_micros
from hublet.core.dataclasses import dataclass
from hublet.jobs.logs.reader import job_folder
from hublet.jobs.records import Usage

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
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        header = _read_header(file)
        slots = os.pread(file, SLOTS * _SLOT.size, _HEADER.size)
    finally:
        os.close(file)
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
    head = os.pread(file, _HEADER.size, 0)
    if len(head) < _HEADER.size or not head.startswith(_MARK):
        return None
    mark, start, last, millicores, memory = _HEADER.unpack(head)
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
