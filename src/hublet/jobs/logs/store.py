"""SQL that tells which jobs are over."""

import json
from collections.abc import Collection

from hublet.core.database import Reader
from hublet.jobs.records import Stage


async def list_over(conn: Reader, job_ids: Collection[str]) -> set[str]:
    """Return those of the jobs that are over; so are those that do not exist any more."""
    # Whoever comes while the database is asked was not asked about.
    asked = set(job_ids)
    rows = await conn.fetch_all(
        "SELECT id FROM jobs WHERE id IN each($1) AND stage IN each($2)",
        json.dumps(list(asked)), json.dumps([s for s in Stage if not s.is_terminal]),
    )  # fmt: skip
    return asked - {row["id"] for row in rows}
