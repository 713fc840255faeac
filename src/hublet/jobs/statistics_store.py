"""SQL about many jobs at once: their versions, how many there are, what they used."""

import json
import zlib
from collections.abc import Sequence

from hublet.core.database import Reader
from hublet.core.leases import WorkerClaims
from hublet.jobs.records import DailyJobUsage


async def versions_of_owners(conn: Reader, owner_ids: Sequence[str]) -> dict[str, int]:
    """Return a number for each owner that changes with the stages of their jobs."""
    # A job that begins is the newest one, and one that ends is not counted any more.
    rows = await conn.fetch_all(
        """
        SELECT o.id,
            (SELECT max(j.id) FROM jobs j WHERE j.owner_id = o.id) AS newest,
            (SELECT count(*) FROM jobs j
             WHERE j.owner_id = o.id AND j.stage IN ('SCHEDULING', 'RUNNING')) AS going_on,
            (SELECT coalesce(sum(j.version), 0) FROM jobs j
             WHERE j.owner_id = o.id AND j.stage IN ('SCHEDULING', 'RUNNING')) AS versions
        FROM owners o WHERE o.id IN each($1)
        """,
        json.dumps(owner_ids),
    )
    return {
        row["id"]: zlib.crc32(f"{row['newest']} {row['going_on']} {row['versions']}".encode())
        for row in rows
    }


async def versions_of(conn: Reader, job_ids: Sequence[str]) -> dict[str, int]:
    rows = await conn.fetch_all(
        "SELECT id, version FROM jobs WHERE id IN each($1)", json.dumps(list(job_ids))
    )
    return {row["id"]: row["version"] for row in rows}


async def count_by_stage(conn: Reader) -> dict[str, int]:
    rows = await conn.fetch_all("SELECT stage, count(*) AS count FROM jobs GROUP BY stage")
    return {row["stage"]: row["count"] for row in rows}


async def list_claims(conn: Reader) -> list[WorkerClaims]:
    """Return how many jobs each worker looks after now."""
    rows = await conn.fetch_all(
        """
        SELECT claimed_by, count(*), min(claimed_until) FROM jobs
        WHERE claimed_by IS NOT NULL GROUP BY claimed_by ORDER BY claimed_by
        """
    )
    return [WorkerClaims(worker=name, count=count, lease_ends=ends) for name, count, ends in rows]


async def list_daily_usage(conn: Reader, owner_id: str, *, since: int) -> list[DailyJobUsage]:
    """Return how many jobs of an owner began on each day since a moment, and how long they ran."""
    rows = await conn.fetch_all(
        """
        SELECT created_at / 86400000000 AS day, count(*) AS jobs,
            CAST(sum(CASE WHEN stage = 'ERROR' THEN 1 ELSE 0 END) AS BIGINT) AS failed,
            CAST(sum(running_micros) AS BIGINT) AS running
        FROM jobs WHERE owner_id = $1 AND created_at >= $2
        GROUP BY created_at / 86400000000 ORDER BY 1
        """,
        owner_id, since,
    )  # fmt: skip
    return [
        DailyJobUsage(
            day=row["day"],
            jobs=row["jobs"],
            failed=row["failed"],
            running_seconds=row["running"] / 1e6,
        )
        for row in rows
    ]
