"""Scheduling of jobs: owners in turn, the oldest first, as many as the machine has capacity for."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace

from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.jobs import hardware
from hublet.jobs.records import Flavor, JobRecord, network_group_key
from hublet.jobs.service import transition
from hublet.jobs.stages import StageChange, Trigger
from hublet.runtime.supervisor import store
from hublet.runtime.supervisor.records import Locality, MachineRoom, Occupant
from hublet.runtime.supervisor.transitions import STARTING

MOUNTING = "mounting volumes"

# Of each owner; jobs further back learn later how many are before them.
_JOBS_PER_OWNER = 50
# So near its turn a job is notified of every step; before that, only when the queue has halved.
_NEAR = 20
# An attempt that ended and cannot be cleared away keeps its capacity for so long.
_CLEARING_GRACE = 60_000_000
_LOCK = "jobs.taking"
# A cancellation ends 5 s after the grace, of which a silent runner may still take up two.
CANCEL_MARGIN = 2_500_000
_BOUNDLESS = 10**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Capacity of a machine, need of a job, or what is left over."""

    jobs: int
    cores: float
    memory_bytes: int
    devices: frozenset[str] = frozenset()

    def without(self, need: "Capacity") -> "Capacity":
        """Return what is left, or nothing where more is needed than there is."""
        return Capacity(
            jobs=max(self.jobs - need.jobs, 0),
            cores=max(self.cores - need.cores, 0),
            memory_bytes=max(self.memory_bytes - need.memory_bytes, 0),
            devices=self.devices - need.devices,
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
    cores, memory = os.cpu_count() or 1, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if jobs.runner == "kubernetes":
        # A cluster knows its own room, and lets pods wait for it.
        cores, memory = _BOUNDLESS, _BOUNDLESS
    return Capacity(
        jobs=jobs.concurrent,
        cores=jobs.cores or cores,
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


class FreeCapacity:
    """Free capacity of the machine, where the members of a network group share (decision 0031).

    A group takes the cores and the memory of its largest member. A member whose group has begun
    waits for neither: those who are there may wait for it. Memory that the settings name is kept.
    """

    def __init__(self, settings: Settings, occupying: Sequence[Occupant]) -> None:
        self._settings = settings
        self._shares_memory = settings.jobs.memory_bytes is None
        self._total = self._free = machine_capacity(settings)
        # What the members of each group share.
        self._shared: dict[str, Capacity] = {}
        for each in occupying:
            self._take(each.flavor, each.group)

    def begin(self, job: JobRecord) -> bool:
        """Take what a job needs, if it is there."""
        need = self._need(job.spec.flavor)
        if self.has_begun(job):
            memory = 0 if self._shares_memory else need.memory_bytes
            need = replace(need, cores=0, memory_bytes=memory)
        if not self._free.has(need):
            return False
        self._take(job.spec.flavor, _group_of(job))
        return True

    def has_begun(self, job: JobRecord) -> bool:
        """Tell whether other members of the job's network group have begun."""
        return _group_of(job) in self._shared

    def has_devices(self, job: JobRecord) -> bool:
        return self._free.devices >= self._need(job.spec.flavor).devices

    def _need(self, flavor: Flavor) -> Capacity:
        return flavor_capacity(flavor, self._settings, self._total)

    def _take(self, flavor: Flavor, group: str | None) -> None:
        need = self._need(flavor)
        if group is not None:
            shared = self._shared.get(group, Capacity(jobs=0, cores=0, memory_bytes=0))
            need = need.without(shared)
            memory = shared.memory_bytes + need.memory_bytes if self._shares_memory else 0
            self._shared[group] = Capacity(
                jobs=0, cores=shared.cores + need.cores, memory_bytes=memory
            )
        self._free = self._free.without(need)


def _group_of(job: JobRecord) -> str | None:
    return network_group_key(job.spec.network, job.owner_id, job.resource_group_id)


def split_by_capacity(
    queue: Sequence[JobRecord], occupying: Sequence[Occupant], settings: Settings
) -> tuple[list[JobRecord], list[JobRecord]]:
    """Return the jobs that begin now and those that wait.

    No job overtakes one that is before it in the queue, unless that one waits for a device, or
    its own network group has begun.
    """
    free = FreeCapacity(settings, occupying)
    begin, wait = list[JobRecord](), list[JobRecord]()
    is_full = False
    for job in queue:
        if is_full and not free.has_begun(job):
            wait.append(job)
        elif free.begin(job):
            begin.append(job)
        else:
            wait.append(job)
            is_full = is_full or free.has_devices(job)
    return begin, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingContext:
    """The machine that jobs are scheduled on, and what the other machines have."""

    settings: Settings
    locality: Locality
    # Whether its runner has attempts that no other machine can look after.
    is_local: bool
    # Whether it has a runner at all.
    is_usable: bool
    other_rooms: Sequence[MachineRoom] = ()

    @property
    def machine_id(self) -> str:
        return self.locality.machine.id

    def is_here(self, occupant: Occupant) -> bool:
        """Tell whether an attempt takes from the capacity of this machine."""
        return occupant.machine_id is None or occupant.machine_id == self.machine_id

    def belongs_elsewhere(self, flavor: Flavor) -> bool:
        """Tell whether another machine can run a flavor that this one cannot, or not as large."""
        size = hardware.offered_flavors(self.settings).get(flavor)
        others = [room for room in self.other_rooms if flavor in room.flavors]
        if size is None or not self.is_usable:
            return bool(others)
        total = machine_capacity(self.settings)
        return not _fits(size, total.cores, total.memory_bytes) and any(
            _fits(size, room.cores, room.memory_bytes) for room in others
        )


def _fits(size: FlavorSize, cores: float, memory_bytes: int) -> bool:
    return size.cores <= cores and size.memory_bytes <= memory_bytes


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
    # Whether a job stays in the queue.
    leaves_jobs: bool = False

    def __bool__(self) -> bool:
        return bool(self.under_way or self.begins or self.refused or self.waits)


async def make_plan(
    conn: Reader, context: SchedulingContext, *, notify: bool = True
) -> SchedulingPlan:
    """Return what can be done now; with `notify`, waiting jobs get a message on their place."""
    settings = context.settings
    plan = SchedulingPlan(
        under_way=await store.list_under_way(
            conn, context.locality, unconfirmed_before=unconfirmed_before(settings)
        )
    )
    waiting = await store.list_waiting(conn, context.locality, each=_JOBS_PER_OWNER)
    if not waiting:
        return plan
    offered = hardware.offered_flavors(settings)
    able = list[JobRecord]()
    for each in waiting:
        flavor = each.job.spec.flavor
        is_left = each.obstacle is None and context.belongs_elsewhere(flavor)
        missing = None if flavor in offered else f"this hub does not offer {flavor} any more"
        if is_left:
            continue
        if (obstacle := each.obstacle or missing) is None:
            able.append(each.job)
        else:
            plan.refused.append((each.job, obstacle))
    occupying = await store.list_occupying(conn, ended_after=micros() - _CLEARING_GRACE)
    here = [each for each in occupying if context.is_here(each)]
    if context.is_local:
        able = _without_groups_elsewhere(able, occupying, here)
    # Owners take turns over all machines; capacity is that of this one.
    queue = in_fair_order(able, occupying)
    plan.begins, left = split_by_capacity(queue, here, settings)
    plan.leaves_jobs = len(plan.begins) + len(plan.refused) < len(waiting)
    plan.waits = _waiting_messages(left) if notify else []
    return plan


def unconfirmed_before(settings: Settings) -> int:
    """Return when a cancellation must have been requested to end without any confirmation."""
    return micros() - round(settings.jobs.grace_seconds * 1_000_000) - CANCEL_MARGIN


def _without_groups_elsewhere(
    able: Sequence[JobRecord], occupying: Sequence[Occupant], here: Sequence[Occupant]
) -> list[JobRecord]:
    """Leave out jobs whose network group has begun on another machine: it ends at that one."""
    elsewhere = {each.group for each in occupying} - {each.group for each in here} - {None}
    return [job for job in able if _group_of(job) not in elsewhere]


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
    conn: Connection, context: SchedulingContext, *, worker: str, runner: str, lease: int
) -> tuple[list[str], bool]:
    """Do what `make_plan` says; return the jobs that are claimed once this is committed.

    And whether jobs are left that were due, and may be so at the next claim.
    """
    # Two workers that see the same free capacity would both use it.
    await conn.lock(_LOCK)
    plan = await make_plan(conn, context)
    for job, reason in plan.refused:
        await transition(conn, job, StageChange(trigger=Trigger.refused, message=reason))
    for job, message in plan.waits:
        await transition(conn, job, StageChange(trigger=Trigger.progress, message=message))
    for job in plan.begins:
        machine_id = context.machine_id if context.is_local else None
        await store.add_attempt(conn, job, runner=runner, machine_id=machine_id)
        message = MOUNTING if job.spec.mounts else STARTING
        await transition(conn, job, StageChange(trigger=Trigger.progress, message=message))
    to_claim = [*plan.under_way, *(job.id for job in plan.begins)]
    claimed = [
        job_id for job_id in to_claim if await store.claim(conn, job_id, worker=worker, lease=lease)
    ]
    return claimed, plan.leaves_jobs or not claimed
