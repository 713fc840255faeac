"""SQL of the supervisor: leases on jobs, the queue of waiting jobs, and attempts."""

import json
from collections.abc import Collection

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.leases import lease_clock
from hublet.jobs.records import DUE_JOBS, Flavor, JobRecord, NetworkGroup, network_group_key
from hublet.jobs.store import JOB_COLUMNS, job_record
from hublet.runtime.supervisor.records import (
    AttemptRecord,
    HeldJob,
    Locality,
    Occupant,
    WaitingJob,
)

_IS_ACTIVE = "j.stage IN ('SCHEDULING', 'RUNNING')"
_THIS_ATTEMPT = "a.job_id = j.id AND a.number = j.attempt"
_ATTEMPT = """
    a.number AS a_number, a.runner AS a_runner, a.handle AS a_handle,
    a.launched_at AS a_launched_at, a.started_at AS a_started_at, a.machine_id AS a_machine_id,
    m.name AS m_name
"""
_MACHINE = "LEFT JOIN machines m ON m.id = a.machine_id"
# With the machine and the data folder of a worker, and when leases of machines must have ended.
_IS_HERE = "(a.machine_id IS NULL OR a.machine_id = $1 OR coalesce(m.folder_id, '') = $2)"
_IS_LOST = "(a.machine_id IS NOT NULL AND coalesce(m.lease_ends, 0) <= $3)"
# An attempt whose launch never ended, of a job that is over.
_FORGOTTEN = """
    removed_at IS NULL AND handle = '' AND launched_at < $1 AND EXISTS (
        SELECT 1 FROM jobs j WHERE j.id = job_id AND j.stage NOT IN ('SCHEDULING', 'RUNNING')
    )
"""


class _CapacityOnly(msgspec.Struct):
    """The part of a spec that says how much capacity it needs."""

    flavor: Flavor
    network: NetworkGroup | None = None


async def has_work(conn: Reader) -> bool:
    """Tell whether a job is not over, or an attempt was not cleared away."""
    found = await conn.fetch_value(
        """
        SELECT 1 FROM jobs WHERE due_at IS NOT NULL
        UNION ALL SELECT 1 FROM job_attempts WHERE removed_at IS NULL LIMIT 1
        """
    )
    return found is not None


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


async def list_under_way(conn: Reader, locality: Locality, *, unconfirmed_before: int) -> list[str]:
    """Return unclaimed jobs that need no capacity: their attempt runs, or they are canceled.

    An attempt of another data folder is left to its machine, unless that is lost or has not
    confirmed a cancellation in time.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT j.id FROM jobs j LEFT JOIN job_attempts a ON {_THIS_ATTEMPT} {_MACHINE}
        WHERE j.due_at <= $4 AND j.claimed_by IS NULL AND {_IS_ACTIVE}
            AND (j.cancel_requested_at IS NOT NULL OR j.stage = 'RUNNING' OR a.handle <> '')
            AND ({_IS_HERE} OR {_IS_LOST} OR j.cancel_requested_at < $5)
        """,
        *_values(locality), micros(), unconfirmed_before,
    )  # fmt: skip
    return [row["id"] for row in rows]


def _values(locality: Locality) -> tuple[str, str, int]:
    return locality.machine.id, locality.machine.folder_id, locality.lost_before


async def list_waiting(conn: Reader, locality: Locality, *, each: int) -> list[WaitingJob]:
    """Return jobs that wait for capacity, the oldest so many of each owner.

    A launch that another data folder may have begun is left to its machine, unless that is lost.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT {JOB_COLUMNS}, u.id AS user_id, u.disabled_at, o.id AS organization_id FROM (
            SELECT j.id, row_number() OVER (
                PARTITION BY j.owner_id ORDER BY j.created_at, j.id
            ) AS place
            FROM jobs j LEFT JOIN job_attempts a ON {_THIS_ATTEMPT} {_MACHINE}
            WHERE j.due_at <= $4 AND j.claimed_by IS NULL AND j.stage = 'SCHEDULING'
                AND j.cancel_requested_at IS NULL AND coalesce(a.handle, '') = ''
                AND ({_IS_HERE} OR {_IS_LOST})
        ) w
        JOIN jobs j ON j.id = w.id
        LEFT JOIN users u ON u.id = j.owner_id
        LEFT JOIN organizations o ON o.id = j.owner_id
        WHERE w.place <= $5 ORDER BY j.created_at, j.id
        """,
        *_values(locality), micros(), each,
    )  # fmt: skip
    return [WaitingJob(job=job_record(row), obstacle=_obstacle(row)) for row in rows]


def _obstacle(row: Row) -> str | None:
    if row["user_id"] is None and row["organization_id"] is None:
        return "its owner is gone"
    return None if row["disabled_at"] is None else "the account of its owner is disabled"


async def list_occupying(conn: Reader, *, ended_after: int) -> list[Occupant]:
    """Return each attempt that occupies capacity: it runs, is launched, or just ended.

    An attempt that ended frees its capacity when it is cleared away; where that keeps failing,
    after a while.
    """
    rows = await conn.fetch_all(
        """
        SELECT j.owner_id, j.resource_group_id, j.spec, a.machine_id
        FROM job_attempts a JOIN jobs j ON j.id = a.job_id
        WHERE a.removed_at IS NULL AND (a.ended_at IS NULL OR a.ended_at > $1)
            AND (a.handle <> '' OR (j.claimed_by IS NOT NULL AND a.number = j.attempt))
        """,
        ended_after,
    )
    return [_occupant(row) for row in rows]


def _occupant(row: Row) -> Occupant:
    # Of hundreds of specs only so much is decoded.
    spec = msgspec.json.decode(row["spec"], type=_CapacityOnly)
    owner_id, resource_group_id = row["owner_id"], row["resource_group_id"]
    return Occupant(
        owner_id=owner_id,
        flavor=spec.flavor,
        group=network_group_key(spec.network, owner_id, resource_group_id),
        machine_id=row["machine_id"],
    )


async def claim(conn: Connection, job_id: str, *, worker: str, lease: int) -> bool:
    """Claim a job for a worker; False when another has it."""
    return await conn.execute(
        """
        UPDATE jobs SET claimed_by = $2, claimed_until = $3 WHERE id = $1 AND claimed_by IS NULL
        """,
        job_id, worker, lease_clock() + lease,
    ) == 1  # fmt: skip


async def add_attempt(
    conn: Connection, job: JobRecord, *, runner: str, machine_id: str | None
) -> None:
    """Add the attempt a job is at; one that could not begin so far keeps its time of launch."""
    await conn.execute(
        """
        INSERT INTO job_attempts (job_id, number, runner, handle, launched_at, machine_id)
        VALUES ($1, $2, $3, '', $4, $5)
        ON CONFLICT (job_id, number) DO UPDATE SET machine_id = excluded.machine_id
        """,
        job.id, job.attempt, runner, micros(), machine_id,
    )  # fmt: skip


async def leave_machine(conn: Connection, attempt: AttemptRecord) -> None:
    """Let any machine begin an attempt that could not begin here so far."""
    await conn.execute(
        """
        UPDATE job_attempts SET machine_id = NULL
        WHERE job_id = $1 AND number = $2 AND handle = ''
        """,
        attempt.job_id, attempt.number,
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
        conn.wake(DUE_JOBS)
    return count


async def find_held(
    conn: Reader, job_id: str, locality: Locality, *, worker: str
) -> HeldJob | None:
    """Return a job that is not over and that this worker has claimed, with its attempt."""
    row = await conn.fetch_one(
        f"""
        SELECT {JOB_COLUMNS}, {_ATTEMPT}, {_IS_HERE} AS a_is_here, {_IS_LOST} AS a_is_lost
        FROM jobs j LEFT JOIN job_attempts a ON {_THIS_ATTEMPT} {_MACHINE}
        WHERE j.id = $4 AND j.claimed_by = $5 AND {_IS_ACTIVE}
        """,
        *_values(locality), job_id, worker,
    )  # fmt: skip
    return None if row is None else HeldJob(job=job_record(row), attempt=_attempt(row))


async def set_handle(conn: Connection, attempt: AttemptRecord, handle: str, *, runner: str) -> None:
    """Write the handle of an attempt, also when its job went on without it meanwhile."""
    await conn.execute(
        """
        UPDATE job_attempts SET handle = $3, runner = $4, removed_at = NULL
        WHERE job_id = $1 AND number = $2
        """,
        attempt.job_id, attempt.number, handle, runner,
    )  # fmt: skip


async def list_canceled(conn: Reader, *, worker: str) -> list[str]:
    """Return the jobs of this worker whose cancellation was requested."""
    rows = await conn.fetch_all(
        f"""
        SELECT j.id FROM jobs j
        WHERE j.claimed_by = $1 AND j.cancel_requested_at IS NOT NULL AND {_IS_ACTIVE}
        """,
        worker,
    )
    return [row["id"] for row in rows]


def _attempt(row: Row) -> AttemptRecord | None:
    if row["a_number"] is None:
        return None
    return AttemptRecord(
        job_id=row["id"],
        number=row["a_number"],
        runner=row["a_runner"],
        handle=row["a_handle"],
        launched_at=row["a_launched_at"],
        started_at=row["a_started_at"],
        elsewhere=None if row["a_is_here"] else row["m_name"] or row["a_machine_id"],
        is_lost=bool(row["a_is_lost"]),
    )


async def set_removed(conn: Connection, attempt: AttemptRecord, *, at: int) -> None:
    """Free the capacity of an attempt; one that nobody saw end has ended by now."""
    await conn.execute(
        """
        UPDATE job_attempts SET removed_at = $3, ended_at = coalesce(ended_at, $3)
        WHERE job_id = $1 AND number = $2
        """,
        attempt.job_id, attempt.number, at,
    )  # fmt: skip


async def list_leftovers(conn: Reader, locality: Locality, *, runner: str) -> list[AttemptRecord]:
    """Return attempts here that were not cleared away, and that their job has left behind.

    Also those that their job went on without while this machine was lost.
    """
    machine = locality.machine
    rows = await conn.fetch_all(
        f"""
        SELECT a.job_id, a.number, a.handle, a.launched_at, a.started_at
        FROM job_attempts a JOIN jobs j ON j.id = a.job_id {_MACHINE}
        WHERE {_IS_HERE} AND a.runner = $3 AND a.removed_at IS NULL AND a.handle <> ''
            AND (a.number < j.attempt OR j.stage NOT IN ('SCHEDULING', 'RUNNING'))
        """,
        machine.id, machine.folder_id, runner,
    )  # fmt: skip
    return [
        AttemptRecord(
            job_id=row["job_id"],
            number=row["number"],
            runner=runner,
            handle=row["handle"],
            launched_at=row["launched_at"],
            started_at=row["started_at"],
        )
        for row in rows
    ]


async def has_forgotten(conn: Reader, *, before: int) -> bool:
    """Tell whether a launch never ended although its job is long over."""
    found = await conn.fetch_value(f"SELECT 1 FROM job_attempts WHERE {_FORGOTTEN} LIMIT 1", before)
    return found is not None


async def remove_forgotten(conn: Connection, *, before: int) -> None:
    await conn.execute(
        f"UPDATE job_attempts SET removed_at = launched_at WHERE {_FORGOTTEN}", before
    )


async def list_handles(conn: Reader, locality: Locality, *, runner: str) -> set[str]:
    """Return the handles of the attempts here that the runner is known to have."""
    machine = locality.machine
    rows = await conn.fetch_all(
        f"""
        SELECT a.handle FROM job_attempts a {_MACHINE}
        WHERE {_IS_HERE} AND a.runner = $3 AND a.removed_at IS NULL
        """,
        machine.id, machine.folder_id, runner,
    )  # fmt: skip
    return {row["handle"] for row in rows}


async def oldest_launch(conn: Reader, locality: Locality) -> int | None:
    """Return when the oldest launch here began that has not written its handle; None: there is none.

    The runner may have the attempt already: its worker may have been killed in between.
    """
    since: int | None = await conn.fetch_value(
        f"""
        SELECT min(a.launched_at) FROM job_attempts a JOIN jobs j ON j.id = a.job_id {_MACHINE}
        WHERE {_IS_HERE} AND a.removed_at IS NULL AND a.handle = '' AND a.number = j.attempt
            AND j.stage IN ('SCHEDULING', 'RUNNING')
        """,
        locality.machine.id, locality.machine.folder_id,
    )  # fmt: skip
    return since
