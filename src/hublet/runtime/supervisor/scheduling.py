"""Scheduling of jobs: owners in turn, the oldest first, as many as the machine has capacity for."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Connection, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.jobs import hardware
from hublet.jobs.records import Flavor, JobRecord
from hublet.jobs.service import transition
from hublet.jobs.stages import StageChange, Trigger
from hublet.runtime.supervisor import lease_store
from hublet.runtime.supervisor.records import Occupant
from hublet.runtime.supervisor.transitions import STARTING


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Of a machine, a job, or what is left."""

    jobs: int
    cores: float
    memory_bytes: int
    devices: frozenset[str] = frozenset()

    def without(self, need: "Capacity") -> "Capacity":
        return Capacity(
            jobs=self.jobs - need.jobs,
            cores=self.cores - need.cores,
            memory_bytes=self.memory_bytes - need.memory_bytes,
            devices=self.devices - need.devices,
        )

    def times(self, count: int) -> "Capacity":
        return Capacity(
            jobs=self.jobs * count,
            cores=self.cores * count,
            memory_bytes=self.memory_bytes * count,
            devices=self.devices,
        )

    def has(self, need: "Capacity") -> bool:
        return (
            self.jobs >= need.jobs
            and self.cores >= need.cores
            and self.memory_bytes >= need.memory_bytes
            and self.devices >= need.devices
        )


def machine_capacity(settings: Settings) -> Capacity:
    jobs = settings.jobs
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Capacity(
        jobs=jobs.concurrent,
        cores=jobs.cores or os.cpu_count() or 1,
        memory_bytes=jobs.memory_bytes or memory,
        devices=frozenset(device for size in jobs.flavors or () for device in size.devices),
    )


def flavor_capacity(flavor: Flavor, settings: Settings, total: Capacity) -> Capacity:
    """Return what a job of a flavor takes; one larger than the machine takes all of it."""
    size = hardware.offered_flavors(settings).get(flavor)
    if size is None:
        return Capacity(jobs=1, cores=0, memory_bytes=0)
    return Capacity(
        jobs=1,
        cores=min(size.cores, total.cores),
        memory_bytes=min(size.memory_bytes, total.memory_bytes),
        devices=frozenset(size.devices),
    )


def in_fair_order(waiting: Sequence[JobRecord], occupying: Sequence[Occupant]) -> list[JobRecord]:
    """Put jobs, oldest first, into the order in which they get their places.

    Whoever has fewer at work comes first, so that an owner with a thousand jobs is no wall before
    an owner with one.
    """
    turns = Counter(each.owner_id for each in occupying)
    ranked = list[tuple[int, JobRecord]]()
    for job in waiting:
        ranked.append((turns[job.owner_id], job))
        turns[job.owner_id] += 1
    return [job for _, job in sorted(ranked, key=lambda pair: pair[0])]


def split_by_capacity(
    line: Sequence[JobRecord], occupying: Sequence[Occupant], settings: Settings
) -> tuple[list[JobRecord], list[JobRecord]]:
    """Return who begins now and who waits.

    Nobody passes one that is before them in the line, unless that one waits for a device.
    """
    total = machine_capacity(settings)
    free = total
    for flavor, count in Counter(each.flavor for each in occupying).items():
        free = free.without(flavor_capacity(flavor, settings, total).times(count))
    begin, wait = list[JobRecord](), list[JobRecord]()
    for place, job in enumerate(line):
        need = flavor_capacity(job.spec.flavor, settings, total)
        if not free.devices >= need.devices:
            wait.append(job)
            continue
        if not free.has(need):
            return begin, [*wait, *line[place:]]
        begin.append(job)
        free = free.without(need)
    return begin, wait


MOUNTING = "mounting volumes"

# Of each owner; those behind them learn later how many are before them.
_JOBS_PER_OWNER = 50
# How near its turn a job is told of every step; before that, only when the line is half as long.
_NEAR = 20
# An attempt that ended and cannot be cleared away keeps its place for so long.
_CLEARING_GRACE = 60_000_000
_LOCK = "jobs.taking"


@dataclass(slots=True)
class SchedulingPlan:
    """What could be done right now."""

    # Their attempt goes on, or somebody wants them to end.
    under_way: list[str] = field(default_factory=list)
    begins: list[JobRecord] = field(default_factory=list)
    # With the reason why they never begin.
    refused: list[tuple[JobRecord, str]] = field(default_factory=list)
    # With what they are to be told.
    waits: list[tuple[JobRecord, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.under_way or self.begins or self.refused or self.waits)


async def make_plan(conn: Reader, settings: Settings, *, tells: bool = True) -> SchedulingPlan:
    """Look what could be done; `tells` says whether those who wait are told how many are before."""
    made = SchedulingPlan(under_way=await lease_store.list_under_way(conn))
    waiting = await lease_store.list_waiting(conn, each=_JOBS_PER_OWNER)
    if not waiting:
        return made
    offered = hardware.offered_flavors(settings)
    able = list[JobRecord]()
    for each in waiting:
        flavor = each.job.spec.flavor
        missing = None if flavor in offered else f"this hub does not offer {flavor} any more"
        if (obstacle := each.obstacle or missing) is None:
            able.append(each.job)
        else:
            made.refused.append((each.job, obstacle))
    occupying = await lease_store.list_occupying(conn, ended_after=micros() - _CLEARING_GRACE)
    line = in_fair_order(able, occupying)
    made.begins, left = split_by_capacity(line, occupying, settings)
    made.waits = _waiting_messages(left) if tells else []
    return made


def _waiting_messages(left: Sequence[JobRecord]) -> list[tuple[JobRecord, str]]:
    return [
        (job, waiting_message(before))
        for before, job in enumerate(left)
        if _is_worth_saying(job.message, before)
    ]


def waiting_message(before: int) -> str:
    return f"waiting for capacity ({before} before it)"


def _is_worth_saying(told: str | None, before: int) -> bool:
    found = re.fullmatch(r"waiting for capacity \((\d+) before it\)", told or "")
    if found is None:
        # The reason of a retry is worth more than the length of the line.
        return not (told or "").startswith("attempt ")
    said = int(found[1])
    return said != before and (before <= _NEAR or before <= said // 2 or before > said * 2)


async def claim_jobs(
    conn: Connection, settings: Settings, *, worker: str, runner: str, lease: int
) -> list[str]:
    """Do what `plan` says, and return the jobs that are held once this is committed."""
    # Two who look at the same free place would both give it away.
    await conn.lock(_LOCK)
    made = await make_plan(conn, settings)
    for job, reason in made.refused:
        await transition(conn, job, StageChange(trigger=Trigger.refused, message=reason))
    for job, message in made.waits:
        await transition(conn, job, StageChange(trigger=Trigger.progress, message=message))
    for job in made.begins:
        await lease_store.add_attempt(conn, job, runner=runner)
        message = MOUNTING if job.spec.mounts else STARTING
        await transition(conn, job, StageChange(trigger=Trigger.progress, message=message))
    wanted = [*made.under_way, *(job.id for job in made.begins)]
    return [
        job_id
        for job_id in wanted
        if await lease_store.claim(conn, job_id, worker=worker, lease=lease)
    ]
