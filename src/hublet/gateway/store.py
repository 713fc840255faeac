"""SQL of the gateway: jobs with their current attempt, browser passes, orders, and owners of SSH keys."""

import json
from collections.abc import Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.gateway.records import BrowserPass, JobPort, KeyHolder, ReachableJob, RunningJob
from hublet.jobs.records import Stage
from hublet.jobs.store import JOB_COLUMNS, job_record

CODE_KIND, COOKIE_KIND = "code", "cookie"


async def find_reachable(conn: Reader, job_id: str) -> ReachableJob | None:
    row = await _find_job(conn, job_id)
    if row is None:
        return None
    return ReachableJob(
        job=job_record(row),
        runner=row["a_runner"],
        handle=row["a_handle"] or None,
        machine_id=row["a_machine_id"],
    )


async def find_running(conn: Reader, job_id: str) -> RunningJob | None:
    row = await _find_job(conn, job_id)
    if row is None or row["a_ended_at"] is not None or not row["a_handle"]:
        return None
    job = job_record(row)
    if job.stage is not Stage.running:
        return None
    return RunningJob(
        job=job, runner=row["a_runner"], handle=row["a_handle"], machine_id=row["a_machine_id"]
    )


async def _find_job(conn: Reader, job_id: str) -> Row | None:
    """Return a job with its current attempt, whose columns begin with `a_`."""
    return await conn.fetch_one(
        f"""
        SELECT {JOB_COLUMNS}, a.runner AS a_runner, a.handle AS a_handle, a.ended_at AS a_ended_at,
            a.machine_id AS a_machine_id
        FROM jobs j LEFT JOIN job_attempts a ON a.job_id = j.id AND a.number = j.attempt
        WHERE j.id = $1
        """,
        job_id,
    )


async def add_code(
    conn: Connection,
    target: JobPort,
    *,
    digest: str,
    state_digest: str,
    session_id: str,
    until: int,
) -> None:
    """Add a code; expired passes are removed."""
    await conn.execute("DELETE FROM job_passes WHERE expires_at <= $1", micros())
    await _add_pass(conn, target, (digest, CODE_KIND, session_id, state_digest, until))


async def add_cookie(
    conn: Connection, target: JobPort, *, digest: str, session_id: str, until: int
) -> None:
    await _add_pass(conn, target, (digest, COOKIE_KIND, session_id, None, until))


async def _add_pass(conn: Connection, target: JobPort, values: tuple[object, ...]) -> None:
    await conn.execute(
        """
        INSERT INTO job_passes (job_id, port, digest, kind, session_id, state_digest, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        target.job_id, target.port, *values,
    )  # fmt: skip


async def consume_code(
    conn: Connection, target: JobPort, *, digests: Sequence[str], state_digests: Sequence[str]
) -> str | None:
    """Delete a code of this port and browser; return its session."""
    rows = await conn.claim(
        """
        DELETE FROM job_passes
        WHERE digest IN each($1) AND kind = 'code' AND job_id = $2 AND port = $3
            AND state_digest IN each($4) AND expires_at > $5
        RETURNING session_id
        """,
        json.dumps(digests), target.job_id, target.port, json.dumps(state_digests), micros(),
    )  # fmt: skip
    return rows[0]["session_id"] if rows else None


async def find_pass(conn: Reader, target: JobPort, *, digests: Sequence[str]) -> BrowserPass | None:
    """Return the pass of a cookie; None once its session has ended."""
    row = await conn.fetch_one(
        """
        SELECT s.id, s.user_id FROM job_passes p
        JOIN sessions s ON s.id = p.session_id JOIN users u ON u.id = s.user_id
        WHERE p.digest IN each($1) AND p.kind = 'cookie' AND p.job_id = $2 AND p.port = $3
            AND p.expires_at > $4 AND s.expires_at > $4 AND u.disabled_at IS NULL
        """,
        json.dumps(digests), target.job_id, target.port, micros(),
    )  # fmt: skip
    return BrowserPass(session_id=row["id"], user_id=row["user_id"]) if row else None


async def use_order(conn: Connection, nonce: str, *, now: int, until: int) -> bool:
    """Note that an order between machines is served; return False if it was before.

    Both times are on the clock of leases. Orders that are too old in any case are removed.
    """
    await conn.execute("DELETE FROM tunnel_orders WHERE expires_at < $1", now)
    rows = await conn.claim(
        """
        INSERT INTO tunnel_orders (nonce, expires_at) VALUES ($1, $2)
        ON CONFLICT (nonce) DO NOTHING RETURNING nonce
        """,
        nonce, until,
    )  # fmt: skip
    return bool(rows)


async def find_key_holder(conn: Reader, fingerprint: str) -> KeyHolder | None:
    """Return the user of a key; None if the account is disabled."""
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
