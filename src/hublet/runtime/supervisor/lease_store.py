"""SQL of leases on jobs: claimed, extended, released, and who waits for one."""

import json
from collections.abc import Collection

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.leases import lease_clock
from hublet.jobs.records import JOBS, Flavor, JobRecord
from hublet.jobs.store import JOB_COLUMNS, job_record
from hublet.runtime.supervisor.records import Occupant, WaitingJob

_IS_ACTIVE = "j.stage IN ('SCHEDULING', 'RUNNING')"
_THIS_ATTEMPT = "a.job_id = j.id AND a.number = j.attempt"


class _FlavorOnly(msgspec.Struct):
    """What of a spec counts for a place."""

    flavor: Flavor


async def next_due_after(conn: Reader, at: int) -> int | None:
    due: int | None = await conn.fetch_value(
        "SELECT min(due_at) FROM jobs WHERE due_at > $1 AND claimed_by IS NULL", at
    )
    return due


async def next_due(conn: Reader) -> int | None:
    due: int | None = await conn.fetch_value(
        "SELECT min(due_at) FROM jobs WHERE due_at IS NOT NULL AND claimed_by IS NULL"
    )
    return due


async def list_under_way(conn: Reader) -> list[str]:
    """Return jobs that nobody looks after and that need no place: they have one, or give it up."""
    rows = await conn.fetch_all(
        f"""
        SELECT j.id FROM jobs j LEFT JOIN job_attempts a ON {_THIS_ATTEMPT}
        WHERE j.due_at <= $1 AND j.claimed_by IS NULL AND {_IS_ACTIVE}
            AND (j.cancel_requested_at IS NOT NULL OR j.stage = 'RUNNING' OR a.handle <> '')
        """,
        micros(),
    )
    return [row["id"] for row in rows]


async def list_waiting(conn: Reader, *, each: int) -> list[WaitingJob]:
    """Return jobs that wait for a place, the oldest so many of each owner."""
    rows = await conn.fetch_all(
        f"""
        SELECT {JOB_COLUMNS}, u.id AS user_id, u.disabled_at, o.id AS organization_id FROM (
            SELECT j.id, row_number() OVER (
                PARTITION BY j.owner_id ORDER BY j.created_at, j.id
            ) AS place
            FROM jobs j LEFT JOIN job_attempts a ON {_THIS_ATTEMPT}
            WHERE j.due_at <= $1 AND j.claimed_by IS NULL AND j.stage = 'SCHEDULING'
                AND j.cancel_requested_at IS NULL AND coalesce(a.handle, '') = ''
        ) w
        JOIN jobs j ON j.id = w.id
        LEFT JOIN users u ON u.id = j.owner_id
        LEFT JOIN organizations o ON o.id = j.owner_id
        WHERE w.place <= $2 ORDER BY j.created_at, j.id
        """,
        micros(), each,
    )  # fmt: skip
    return [WaitingJob(job=job_record(row), obstacle=_obstacle(row)) for row in rows]


def _obstacle(row: Row) -> str | None:
    if row["user_id"] is None and row["organization_id"] is None:
        return "its owner is gone"
    return None if row["disabled_at"] is None else "the account of its owner is disabled"


async def list_occupying(conn: Reader, *, ended_after: int) -> list[Occupant]:
    """Return each attempt that has a place: it runs, is launched, or just ended.

    An attempt that ended gives its place back when it is cleared away; where that keeps failing,
    after a while.
    """
    rows = await conn.fetch_all(
        """
        SELECT j.owner_id, j.spec FROM job_attempts a JOIN jobs j ON j.id = a.job_id
        WHERE a.removed_at IS NULL AND (a.ended_at IS NULL OR a.ended_at > $1)
            AND (a.handle <> '' OR (j.claimed_by IS NOT NULL AND a.number = j.attempt))
        """,
        ended_after,
    )
    # With hundreds at work, the rest of what they were asked to do is not read for nothing.
    return [
        Occupant(
            owner_id=row["owner_id"],
            flavor=msgspec.json.decode(row["spec"], type=_FlavorOnly).flavor,
        )
        for row in rows
    ]


async def claim(conn: Connection, job_id: str, *, worker: str, lease: int) -> bool:
    """Hold a job; False when somebody else does."""
    return await conn.execute(
        """
        UPDATE jobs SET claimed_by = $2, claimed_until = $3 WHERE id = $1 AND claimed_by IS NULL
        """,
        job_id, worker, lease_clock() + lease,
    ) == 1  # fmt: skip


async def add_attempt(conn: Connection, job: JobRecord, *, runner: str) -> None:
    """Give a job its place; an attempt that could not begin so far keeps its time."""
    await conn.execute(
        """
        INSERT INTO job_attempts (job_id, number, runner, handle, launched_at)
        VALUES ($1, $2, $3, '', $4) ON CONFLICT (job_id, number) DO NOTHING
        """,
        job.id, job.attempt, runner, micros(),
    )  # fmt: skip


class JobLeaseStore:
    """Leases of one supervisor on jobs, as `LeaseKeeper` wants them."""

    def __init__(self, *, worker: str, lease: int) -> None:
        self._worker = worker
        self._lease = lease

    async def extend(self, conn: Connection, held: Collection[str]) -> list[str]:
        await conn.execute(
            "UPDATE jobs SET claimed_until = $3 WHERE claimed_by = $1 AND id IN each($2)",
            self._worker, json.dumps(list(held)), lease_clock() + self._lease,
        )  # fmt: skip
        return []

    async def has_expired(self, conn: Reader, held: Collection[str]) -> bool:
        """Tell whether a lease has expired, or this worker has a job claimed and not held."""
        found = await conn.fetch_value(
            "SELECT 1 FROM jobs WHERE claimed_by IS NOT NULL AND claimed_until < $1 LIMIT 1",
            lease_clock(),
        )
        if found is None:
            found = await conn.fetch_value(
                "SELECT 1 FROM jobs WHERE claimed_by = $1 AND id NOT IN each($2) LIMIT 1",
                self._worker, json.dumps(list(held)),
            )  # fmt: skip
        return found is not None

    async def release_expired(self, conn: Connection, held: Collection[str]) -> None:
        await release(conn, worker=self._worker, except_for=held)
        await conn.execute(
            """
            UPDATE jobs SET claimed_by = NULL, claimed_until = NULL
            WHERE claimed_by IS NOT NULL AND claimed_until < $1
            """,
            lease_clock(),
        )

    async def release_all(self, conn: Connection) -> int:
        return await release(conn, worker=self._worker)


async def release(conn: Connection, *, worker: str, except_for: Collection[str] = ()) -> int:
    """Release what a worker has claimed, and return how many jobs."""
    count = await conn.execute(
        """
        UPDATE jobs SET claimed_by = NULL, claimed_until = NULL
        WHERE claimed_by = $1 AND id NOT IN each($2)
        """,
        worker, json.dumps(list(except_for)),
    )  # fmt: skip
    if count:
        conn.wake(JOBS)
    return count


async def has_work(conn: Reader) -> bool:
    """Tell whether a job goes on, or an attempt was not cleared away."""
    found = await conn.fetch_value(
        """
        SELECT 1 FROM jobs WHERE due_at IS NOT NULL
        UNION ALL SELECT 1 FROM job_attempts WHERE removed_at IS NULL LIMIT 1
        """
    )
    return found is not None
