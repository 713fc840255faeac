"""SQL of what is reached, and of browsers that were let in."""

import json
from collections.abc import Sequence

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.jobs.reaching.records import Pass, Reachable, Target
from hublet.jobs.store import JOB, job_record

CODE, COOKIE = "code", "cookie"


async def find(conn: Reader, job_id: str) -> Reachable | None:
    row = await conn.fetch_one(
        f"""
        SELECT {JOB}, a.runner AS a_runner, a.handle AS a_handle
        FROM jobs j LEFT JOIN job_attempts a ON a.job_id = j.id AND a.number = j.attempt
        WHERE j.id = $1
        """,
        job_id,
    )
    if row is None:
        return None
    return Reachable(job=job_record(row), runner=row["a_runner"], handle=row["a_handle"] or None)


async def add_code(
    conn: Connection, target: Target, *, digest: str, state_digest: str, session_id: str, until: int
) -> None:
    """Keep a code; those of which the time is over go."""
    await conn.execute("DELETE FROM job_passes WHERE expires_at <= $1", micros())
    await _add(conn, target, (digest, CODE, session_id, state_digest, until))


async def add_cookie(
    conn: Connection, target: Target, *, digest: str, session_id: str, until: int
) -> None:
    await _add(conn, target, (digest, COOKIE, session_id, None, until))


async def _add(conn: Connection, target: Target, values: tuple[object, ...]) -> None:
    await conn.execute(
        """
        INSERT INTO job_passes (job_id, port, digest, kind, session_id, state_digest, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        """,
        target.job_id, target.port, *values,
    )  # fmt: skip


async def take_code(
    conn: Connection, target: Target, *, digests: Sequence[str], state_digests: Sequence[str]
) -> str | None:
    """Use up a code for this very port and browser; return its session."""
    taken = await conn.claim(
        """
        DELETE FROM job_passes
        WHERE digest IN each($1) AND kind = 'code' AND job_id = $2 AND port = $3
            AND state_digest IN each($4) AND expires_at > $5
        RETURNING session_id
        """,
        json.dumps(digests), target.job_id, target.port, json.dumps(state_digests), micros(),
    )  # fmt: skip
    return taken[0]["session_id"] if taken else None


async def find_pass(conn: Reader, target: Target, *, digests: Sequence[str]) -> Pass | None:
    """Return who was let in with a cookie; nobody whose session has ended."""
    row = await conn.fetch_one(
        """
        SELECT s.id, s.user_id FROM job_passes p
        JOIN sessions s ON s.id = p.session_id JOIN users u ON u.id = s.user_id
        WHERE p.digest IN each($1) AND p.kind = 'cookie' AND p.job_id = $2 AND p.port = $3
            AND p.expires_at > $4 AND s.expires_at > $4 AND u.disabled_at IS NULL
        """,
        json.dumps(digests), target.job_id, target.port, micros(),
    )  # fmt: skip
    return Pass(session_id=row["id"], user_id=row["user_id"]) if row else None
