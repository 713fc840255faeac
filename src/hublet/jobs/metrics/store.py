"""SQL that tells what runs."""

import msgspec

from hublet.core.database import Reader
from hublet.jobs.metrics.records import Measured
from hublet.jobs.records import Spec, Stage


async def find(conn: Reader, job_id: str) -> Measured | None:
    row = await conn.fetch_one(
        """
        SELECT j.id, j.stage, j.spec, j.attempt, a.runner, a.handle FROM jobs j
        LEFT JOIN job_attempts a
            ON a.job_id = j.id AND a.number = j.attempt AND a.ended_at IS NULL
        WHERE j.id = $1
        """,
        job_id,
    )
    if row is None:
        return None
    return Measured(
        job_id=row["id"],
        stage=Stage(row["stage"]),
        flavor=msgspec.json.decode(row["spec"], type=Spec).flavor,
        attempt=row["attempt"],
        runner=row["runner"],
        handle=row["handle"] or None,
    )
