"""Scheduling of jobs: owners in turn, the oldest first, as many as the machine has capacity for."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.jobs import hardware
from hublet.jobs.records import Flavor, JobRecord
from hublet.jobs.service import transition
from hublet.jobs.stages import StageChange, Trigger
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.records import Occupant
from hublet.runtime.supervisor.transitions import STARTING

MOUNTING = "mounting volumes"

# Of each owner; jobs further back learn later how many are before them.
_JOBS_PER_OWNER = 50
# So near its turn a job is notified of every step; before that, only when the queue has halved.
_NEAR = 20
# An attempt that ended and cannot be cleared away keeps its capacity for so long.
_CLEARING_GRACE = 60_000_000
_LOCK = "jobs.taking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Capacity of a machine, need of a job, or what is left over."""

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
    """Return what a job of a flavor needs; one larger than the machine needs all of it."""
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
    """Sort jobs, which come oldest first, into the order in which they get capacity.

    The owner with fewer running jobs comes first, so that a thousand jobs of one owner do not
    hold up the one job of another.
    """
    turns = Counter(each.owner_id for each in occupying)
    ranked = list[tuple[int, JobRecord]]()
    for job in waiting:
        ranked.append((turns[job.owner_id], job))
        turns[job.owner_id] += 1
    return [job for _, job in sorted(ranked, key=lambda pair: pair[0])]


def split_by_capacity(
    queue: Sequence[JobRecord], occupying: Sequence[Occupant], settings: Settings
) -> tuple[list[JobRecord], list[JobRecord]]:
    """Return the jobs that begin now and those that wait.

    No job overtakes one that is before it in the queue, unless that one waits for a device.
    """
    total = machine_capacity(settings)
    free = total
    for flavor, count in Counter(each.flavor for each in occupying).items():
        free = free.without(flavor_capacity(flavor, settings, total).times(count))
    begin, wait = list[JobRecord](), list[JobRecord]()
    for place, job in enumerate(queue):
        need = flavor_capacity(job.spec.flavor, settings, total)
        if not free.devices >= need.devices:
            wait.append(job)
            continue
        if not free.has(need):
            return begin, [*wait, *queue[place:]]
        begin.append(job)
        free = free.without(need)
    return begin, wait


@dataclass(slots=True)
class SchedulingPlan:
    """What a supervisor can do right now."""

    # Their attempt goes on, or their cancellation was requested.
    under_way: list[str] = field(default_factory=list)
    begins: list[JobRecord] = field(default_factory=list)
    # With the reason why they never begin.
    refused: list[tuple[JobRecord, str]] = field(default_factory=list)
    # With their new message.
    waits: list[tuple[JobRecord, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.under_way or self.begins or self.refused or self.waits)


async def make_plan(conn: Reader, settings: Settings, *, notify: bool = True) -> SchedulingPlan:
    """Return what can be done now; with `notify`, waiting jobs get a message on their place."""
    plan = SchedulingPlan(under_way=await store.list_under_way(conn))
    waiting = await store.list_waiting(conn, each=_JOBS_PER_OWNER)
    if not waiting:
        return plan
    offered = hardware.offered_flavors(settings)
    able = list[JobRecord]()
    for each in waiting:
        flavor = each.job.spec.flavor
        missing = None if flavor in offered else f"this hub does not offer {flavor} any more"
        if (obstacle := each.obstacle or missing) is None:
            able.append(each.job)
        else:
            plan.refused.append((each.job, obstacle))
    occupying = await store.list_occupying(conn, ended_after=micros() - _CLEARING_GRACE)
    queue = in_fair_order(able, occupying)
    plan.begins, left = split_by_capacity(queue, occupying, settings)
    plan.waits = _waiting_messages(left) if notify else []
    return plan


def _waiting_messages(left: Sequence[JobRecord]) -> list[tuple[JobRecord, str]]:
    return [
        (job, waiting_message(before))
        for before, job in enumerate(left)
        if _is_worth_saying(job.message, before)
    ]


def waiting_message(before: int) -> str:
    return f"waiting for capacity ({before} before it)"


def _is_worth_saying(message: str | None, before: int) -> bool:
    """Tell whether a job's message is to be replaced by its place in the queue."""
    match = re.fullmatch(r"waiting for capacity \((\d+) before it\)", message or "")
    if match is None:
        # The reason of a retry is worth more than the length of the queue.
        return not (message or "").startswith("attempt ")
    said = int(match[1])
    return said != before and (before <= _NEAR or before <= said // 2 or before > said * 2)


async def claim_jobs(
    conn: Connection, settings: Settings, *, worker: str, runner: str, lease: int
) -> list[str]:
    """Do what `make_plan` says; return the jobs that are claimed once this is committed."""
    # Two workers that see the same free capacity would both use it.
    await conn.lock(_LOCK)
    plan = await make_plan(conn, settings)
    for job, reason in plan.refused:
        await transition(conn, job, StageChange(trigger=Trigger.refused, message=reason))
    for job, message in plan.waits:
        await transition(conn, job, StageChange(trigger=Trigger.progress, message=message))
    for job in plan.begins:
        await store.add_attempt(conn, job, runner=runner)
        message = MOUNTING if job.spec.mounts else STARTING
        await transition(conn, job, StageChange(trigger=Trigger.progress, message=message))
    to_claim = [*plan.under_way, *(job.id for job in plan.begins)]
    return [
        job_id for job_id in to_claim if await store.claim(conn, job_id, worker=worker, lease=lease)
    ]
