"""SQL of requests to join an organization."""

from hublet.accounts.records import JoinRequest
from hublet.accounts.users.store import USER_COLUMNS, user_record
from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row


async def add(conn: Connection, organization_id: str, request: JoinRequest) -> bool:
    """Add a request; False when the user has one already."""
    return await conn.execute(
        """
        INSERT INTO join_requests (id, organization_id, user_id, message, created_at)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
        """,
        request.id, organization_id, request.user.id, request.message, to_micros(request.created_at),
    ) == 1  # fmt: skip


_JOIN_REQUESTS = f"""
    SELECT {USER_COLUMNS}, j.id AS request_id, j.message, j.created_at AS requested_at
    FROM join_requests j JOIN users u ON u.id = j.user_id
    WHERE j.organization_id = $1 AND u.disabled_at IS NULL
"""


async def find(conn: Reader, organization_id: str, *, user_id: str) -> JoinRequest | None:
    row = await conn.fetch_one(f"{_JOIN_REQUESTS} AND j.user_id = $2", organization_id, user_id)
    return _join_request(row) if row else None


async def list_open(conn: Reader, organization_id: str, *, limit: int = 100) -> list[JoinRequest]:
    """Return the requests, oldest first, without those of disabled users."""
    rows = await conn.fetch_all(f"{_JOIN_REQUESTS} ORDER BY j.id LIMIT $2", organization_id, limit)
    return [_join_request(row) for row in rows]


async def remove(conn: Connection, organization_id: str, *, user_id: str) -> bool:
    return await conn.execute(
        "DELETE FROM join_requests WHERE organization_id = $1 AND user_id = $2",
        organization_id, user_id,
    ) == 1  # fmt: skip


def _join_request(row: Row) -> JoinRequest:
    return JoinRequest(
        id=row["request_id"],
        user=user_record(row),
        message=row["message"],
        created_at=from_micros(row["requested_at"]),
    )
