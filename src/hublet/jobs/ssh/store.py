"""SQL that tells whose key it is, and which job runs."""

from hublet.core.database import Reader
from hublet.jobs.ssh.records import KeyHolder, Running
from hublet.jobs.store import JOB, job_record


async def find_holder(conn: Reader, fingerprint: str) -> KeyHolder | None:
    """Return whose key it is; nobody whose account is off has any."""
    row = await conn.fetch_one(
        """
        SELECT k.data, u.id, u.name FROM ssh_keys k JOIN users u ON u.id = k.user_id
        WHERE k.fingerprint = $1 AND u.disabled_at IS NULL
        """,
        fingerprint,
    )
    if row is None:
        return None
    return KeyHolder(user_id=row["id"], user_name=row["name"], data=row["data"])


async def find_running(conn: Reader, job_id: str) -> Running | None:
    row = await conn.fetch_one(
        f"""
        SELECT {JOB}, a.runner AS a_runner, a.handle AS a_handle FROM jobs j
        JOIN job_attempts a ON a.job_id = j.id AND a.number = j.attempt AND a.ended_at IS NULL
        WHERE j.id = $1 AND j.stage = 'RUNNING' AND a.handle <> ''
        """,
        job_id,
    )
    if row is None:
        return None
    return Running(job=job_record(row), runner=row["a_runner"], handle=row["a_handle"])
