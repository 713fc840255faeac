"""SQL of what a refresh token is beside a credential."""

import json
from collections.abc import Sequence

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader, Row
from hublet.oauth.access.refreshes.records import Refresh
from hublet.oauth.access.store import ACCESS, access_record


async def add(conn: Connection, token_id: str, *, access_id: str, generation: int) -> None:
    await conn.execute(
        "INSERT INTO oauth_refreshes (token_id, access_id, generation) VALUES ($1, $2, $3)",
        token_id, access_id, generation,
    )  # fmt: skip


async def find(conn: Reader, digests: Sequence[str]) -> Refresh | None:
    row = await conn.fetch_one(
        f"""
        SELECT {ACCESS}, r.token_id, r.generation, r.replaced_at, r.sealed_answer,
               t.revoked_at AS token_revoked_at, t.expires_at AS token_expires_at,
               t.created_at AS token_created_at, u.name AS user_name
        FROM tokens t
        JOIN oauth_refreshes r ON r.token_id = t.id
        JOIN oauth_accesses a ON a.id = r.access_id
        LEFT JOIN users u ON u.id = a.user_id AND u.disabled_at IS NULL
        WHERE t.digest IN each($1)
        """,
        json.dumps(digests),
    )
    return _record(row) if row else None


async def replace(conn: Connection, token_id: str, *, sealed_answer: bytes) -> bool:
    """Mark a refresh token as replaced, by this answer; False when somebody else was faster."""
    return await conn.execute(
        """
        UPDATE oauth_refreshes SET replaced_at = $1, sealed_answer = $2
        WHERE token_id = $3 AND replaced_at IS NULL
        """,
        micros(), sealed_answer, token_id,
    ) == 1  # fmt: skip


def _record(row: Row) -> Refresh:
    now = micros()
    return Refresh(
        token_id=row["token_id"],
        generation=row["generation"],
        replaced_at=from_micros(row["replaced_at"]) if row["replaced_at"] else None,
        sealed_answer=bytes(row["sealed_answer"]) if row["sealed_answer"] else None,
        is_alive=(
            row["token_revoked_at"] is None
            and row["ended_at"] is None
            and row["user_name"] is not None
            and min(row["token_expires_at"], row["expires_at"]) > now
        ),
        created_at=from_micros(row["token_created_at"]),
        expires_at=from_micros(row["token_expires_at"]),
        user_name=row["user_name"] or "",
        access=access_record(row),
    )
