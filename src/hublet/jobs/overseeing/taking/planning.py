"""Takes jobs for one Overseer: those that have a place, and those that get one now."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Connection, Reader
from hublet.jobs import hardware
from hublet.jobs.overseeing.judging import STARTING
from hublet.jobs.overseeing.records import Change
from hublet.jobs.overseeing.store import transition
from hublet.jobs.overseeing.taking import capacity, store
from hublet.jobs.records import Job
from hublet.jobs.stages import Trigger

MOUNTING = "mounting volumes"

# Of each owner; those behind them learn later how many are before them.
_LOOKED_AT = 50
# How near its turn a job is told of every step; before that, only when the line is half as long.
_NEAR = 20
# An attempt that ended and cannot be cleared away keeps its place for so long.
_PLACE_KEPT = 60_000_000
_LOCK = "jobs.taking"


@dataclass(slots=True)
class Plan:
    """What could be done right now."""

    # Their attempt goes on, or somebody wants them to end.
    under_way: list[str] = field(default_factory=list)
    begins: list[Job] = field(default_factory=list)
    # With the reason why they never begin.
    refused: list[tuple[Job, str]] = field(default_factory=list)
    # With what they are to be told.
    waits: list[tuple[Job, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.under_way or self.begins or self.refused or self.waits)


async def plan(conn: Reader, settings: Settings, *, tells: bool = True) -> Plan:
    """Look what could be done; `tells` says whether those who wait are told how many are before."""
    made = Plan(under_way=await store.list_under_way(conn))
    waiting = await store.list_waiting(conn, each=_LOOKED_AT)
    if not waiting:
        return made
    offered = hardware.offered(settings)
    able = list[Job]()
    for each in waiting:
        flavor = each.job.spec.flavor
        missing = None if flavor in offered else f"this hub does not offer {flavor} any more"
        if (obstacle := each.obstacle or missing) is None:
            able.append(each.job)
        else:
            made.refused.append((each.job, obstacle))
    occupying = await store.list_occupying(conn, ended_after=micros() - _PLACE_KEPT)
    line = capacity.in_turn(able, occupying)
    made.begins, left = capacity.split(line, occupying, settings)
    made.waits = _news(left) if tells else []
    return made


def _news(left: Sequence[Job]) -> list[tuple[Job, str]]:
    return [
        (job, waiting_message(before))
        for before, job in enumerate(left)
        if _is_news(job.message, before)
    ]


def waiting_message(before: int) -> str:
    return f"waiting for capacity ({before} before it)"


def _is_news(told: str | None, before: int) -> bool:
    found = re.fullmatch(r"waiting for capacity \((\d+) before it\)", told or "")
    if found is None:
        # The reason of a retry is worth more than the length of the line.
        return not (told or "").startswith("attempt ")
    said = int(found[1])
    return said != before and (before <= _NEAR or before <= said // 2 or before > said * 2)


async def take(
    conn: Connection, settings: Settings, *, worker: str, runner: str, lease: int
) -> list[str]:
    """Do what `plan` says, and return the jobs that are held once this is committed."""
    # Two who look at the same free place would both give it away.
    await conn.lock(_LOCK)
    made = await plan(conn, settings)
    for job, reason in made.refused:
        await transition(conn, job, Change(trigger=Trigger.refused, message=reason))
    for job, message in made.waits:
        await transition(conn, job, Change(trigger=Trigger.progress, message=message))
    for job in made.begins:
        await store.add_attempt(conn, job, runner=runner)
        message = MOUNTING if job.spec.mounts else STARTING
        await transition(conn, job, Change(trigger=Trigger.progress, message=message))
    wanted = [*made.under_way, *(job.id for job in made.begins)]
    return [
        job_id for job_id in wanted if await store.take(conn, job_id, worker=worker, lease=lease)
    ]
