"""SQL of access requests to gated repositories."""

import json

from hublet.accounts.users.store import USER_COLUMNS, user_record
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.repos.records import AccessStatus, GateRequest, GateRequester

# Two columns are renamed, because users have columns of the same names.
_COLUMNS = """
    a.id AS request_id, a.repo_id, a.user_id, a.status, a.fields, a.rejection_reason, a.decided_by,
    a.created_at AS asked_at
"""


async def add(conn: Connection, request: GateRequest) -> bool:
    """Add a request; False when the user has one for this repository."""
    decided_at = None if request.decided_by is None else micros()
    return await conn.execute(
        """
        INSERT INTO access_requests
            (id, repo_id, user_id, status, fields, decided_by, decided_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING
        """,
        request.id, request.repo_id, request.user_id, request.status, json.dumps(request.fields),
        request.decided_by, decided_at, to_micros(request.created_at),
    ) == 1  # fmt: skip


async def find(conn: Reader, repo_id: str, *, user_id: str) -> GateRequest | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM access_requests a WHERE a.repo_id = $1 AND a.user_id = $2",
        repo_id, user_id,
    )  # fmt: skip
    return _record(row) if row else None


async def list_granted_ids(conn: Reader, *, user_id: str, limit: int) -> list[str]:
    """Return the repositories that were opened to a user, the last first."""
    rows = await conn.fetch_all(
        """
        SELECT repo_id FROM access_requests WHERE user_id = $1 AND status = $2
        ORDER BY id DESC LIMIT $3
        """,
        user_id, AccessStatus.accepted, limit,
    )  # fmt: skip
    return [row["repo_id"] for row in rows]


async def find_by_id(conn: Reader, repo_id: str, *, request_id: str) -> GateRequest | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM access_requests a WHERE a.repo_id = $1 AND a.id = $2",
        repo_id, request_id,
    )  # fmt: skip
    return _record(row) if row else None


async def list_of(
    conn: Reader, repo_id: str, status: AccessStatus | None, *, after: str = "", limit: int = 100
) -> list[GateRequester]:
    """Return the requests of this status, or of any, oldest first; disabled users are not shown."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS}, {USER_COLUMNS}, e.address
        FROM access_requests a JOIN users u ON u.id = a.user_id
        LEFT JOIN emails e ON e.user_id = u.id AND e.is_primary
        WHERE a.repo_id = $1 AND ($2 = '' OR a.status = $2) AND a.id > $3 AND u.disabled_at IS NULL
        ORDER BY a.id LIMIT $4
        """,
        repo_id, status or "", after, limit,
    )  # fmt: skip
    return [
        GateRequester(request=_record(row), user=user_record(row), email=row["address"])
        for row in rows
    ]


async def count_of(conn: Reader, repo_id: str, status: AccessStatus) -> int:
    """Count the requests that `list_of` returns."""
    count: int = await conn.fetch_value(
        """
        SELECT count(*) FROM access_requests a JOIN users u ON u.id = a.user_id
        WHERE a.repo_id = $1 AND a.status = $2 AND u.disabled_at IS NULL
        """,
        repo_id, status,
    )  # fmt: skip
    return count


async def decide(conn: Connection, before: GateRequest, after: GateRequest) -> bool:
    """Change the status of a request; False when it is not the one of `before` any more."""
    return await conn.execute(
        """
        UPDATE access_requests
        SET status = $3, rejection_reason = $4, decided_by = $5, decided_at = $6
        WHERE id = $1 AND status = $2
        """,
        before.id, before.status, after.status, after.rejection_reason, after.decided_by, micros(),
    ) == 1  # fmt: skip


async def remove_pending(conn: Connection, repo_id: str, *, user_id: str) -> bool:
    return await conn.execute(
        "DELETE FROM access_requests WHERE repo_id = $1 AND user_id = $2 AND status = $3",
        repo_id, user_id, AccessStatus.pending,
    ) == 1  # fmt: skip


def _record(row: Row) -> GateRequest:
    return GateRequest(
        id=row["request_id"],
        repo_id=row["repo_id"],
        user_id=row["user_id"],
        status=AccessStatus(row["status"]),
        fields=json.loads(row["fields"]),
        rejection_reason=row["rejection_reason"],
        decided_by=row["decided_by"],
        created_at=from_micros(row["asked_at"]),
    )
