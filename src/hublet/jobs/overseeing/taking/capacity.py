"""Who gets the next place: owners in turn, and of one owner the oldest job first."""

import os
from collections import Counter
from collections.abc import Sequence

from hublet.core.config import Settings
from hublet.core.light_dataclasses import dataclass
from hublet.jobs import hardware
from hublet.jobs.overseeing.records import Occupant
from hublet.jobs.records import Flavor, Job


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


def of_machine(settings: Settings) -> Capacity:
    jobs = settings.jobs
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Capacity(
        jobs=jobs.concurrent,
        cores=jobs.cores or os.cpu_count() or 1,
        memory_bytes=jobs.memory_bytes or memory,
        devices=frozenset(device for size in jobs.flavors or () for device in size.devices),
    )


def need_of(flavor: Flavor, settings: Settings, total: Capacity) -> Capacity:
    """Return what a job of a flavor takes; one larger than the machine takes all of it."""
    size = hardware.offered(settings).get(flavor)
    if size is None:
        return Capacity(jobs=1, cores=0, memory_bytes=0)
    return Capacity(
        jobs=1,
        cores=min(size.cores, total.cores),
        memory_bytes=min(size.memory_bytes, total.memory_bytes),
        devices=frozenset(size.devices),
    )


def in_turn(waiting: Sequence[Job], occupying: Sequence[Occupant]) -> list[Job]:
    """Put jobs, oldest first, into the order in which they get their places.

    Whoever has fewer at work comes first, so that an owner with a thousand jobs is no wall before
    an owner with one.
    """
    turns = Counter(each.owner_id for each in occupying)
    ranked = list[tuple[int, Job]]()
    for job in waiting:
        ranked.append((turns[job.owner_id], job))
        turns[job.owner_id] += 1
    return [job for _, job in sorted(ranked, key=lambda pair: pair[0])]


def split(
    line: Sequence[Job], occupying: Sequence[Occupant], settings: Settings
) -> tuple[list[Job], list[Job]]:
    """Return who begins now and who waits.

    Nobody passes one that is before them in the line, unless that one waits for a device.
    """
    total = of_machine(settings)
    free = total
    for flavor, count in Counter(each.flavor for each in occupying).items():
        free = free.without(need_of(flavor, settings, total).times(count))
    begin, wait = list[Job](), list[Job]()
    for place, job in enumerate(line):
        need = need_of(job.spec.flavor, settings, total)
        if not free.devices >= need.devices:
            wait.append(job)
            continue
        if not free.has(need):
            return begin, [*wait, *line[place:]]
        begin.append(job)
        free = free.without(need)
    return begin, wait
