"""SQL of sessions. The values of cookies never come here, only their digests."""

import json
from collections.abc import Sequence
from datetime import datetime

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.login.records import Session

_COLUMNS = (
    "s.id, s.digest, s.user_id, u.name AS user_name, s.created_at, s.authenticated_at, "
    "s.last_used_at, s.expires_at, s.address, s.agent"
)
_ALIVE = "s.expires_at > $2 AND s.last_used_at > $3 AND u.disabled_at IS NULL"


async def put(conn: Connection, session: Session) -> None:
    """Store a session, new or with another value."""
    await conn.execute(
        """
        INSERT INTO sessions (id, digest, user_id, created_at, authenticated_at, last_used_at,
                              expires_at, address, agent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (id) DO UPDATE SET
            digest = excluded.digest, authenticated_at = excluded.authenticated_at,
            last_used_at = excluded.last_used_at
        """,
        session.id, session.digest, session.user_id, to_micros(session.created_at),
        to_micros(session.authenticated_at), to_micros(session.last_used_at),
        to_micros(session.expires_at), session.address, session.agent,
    )  # fmt: skip


async def find_by_digests(
    conn: Reader, digests: Sequence[str], *, used_since: datetime
) -> Session | None:
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS} FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.digest IN each($1) AND {_ALIVE}
        """,
        json.dumps(list(digests)), micros(), to_micros(used_since),
    )  # fmt: skip
    return _record(row) if row else None


async def list_of(conn: Reader, *, user_id: str, used_since: datetime) -> list[Session]:
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.user_id = $1 AND {_ALIVE} ORDER BY s.last_used_at DESC, s.id DESC
        """,
        user_id, micros(), to_micros(used_since),
    )  # fmt: skip
    return [_record(row) for row in rows]


async def set_used(conn: Connection, session_id: str) -> None:
    await conn.execute("UPDATE sessions SET last_used_at = $1 WHERE id = $2", micros(), session_id)


async def remove(conn: Connection, session_id: str, *, user_id: str) -> bool:
    """Remove a user's session; False when there is none of this id."""
    return await conn.execute(
        "DELETE FROM sessions WHERE id = $1 AND user_id = $2", session_id, user_id
    ) == 1  # fmt: skip


async def remove_of(conn: Connection, *, user_id: str, but: str = "") -> None:
    """Remove the sessions of a user, but for one."""
    await conn.execute("DELETE FROM sessions WHERE user_id = $1 AND id <> $2", user_id, but)


async def remove_expired(conn: Connection) -> None:
    await conn.execute("DELETE FROM sessions WHERE expires_at <= $1", micros())


def _record(row: Row) -> Session:
    return Session(
        id=row["id"],
        digest=row["digest"],
        user_id=row["user_id"],
        user_name=row["user_name"],
        created_at=from_micros(row["created_at"]),
        authenticated_at=from_micros(row["authenticated_at"]),
        last_used_at=from_micros(row["last_used_at"]),
        expires_at=from_micros(row["expires_at"]),
        address=row["address"],
        agent=row["agent"],
    )
