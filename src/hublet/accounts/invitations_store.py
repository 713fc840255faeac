"""SQL of invitations."""

from collections.abc import Iterable

import msgspec

from hublet.accounts.records import Invitation, Role
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row

_COLUMNS = "id, organization_id, role, email, creator_id, creator_name, created_at, expires_at"


async def add(conn: Connection, invitation: Invitation, *, digest: str) -> None:
    await conn.execute(
        f"""
        INSERT INTO invitations ({_COLUMNS}, digest)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        """,
        invitation.id, invitation.organization_id, invitation.role, invitation.email,
        invitation.creator_id, invitation.creator_name, to_micros(invitation.created_at),
        to_micros(invitation.expires_at), digest,
    )  # fmt: skip


async def find_open(conn: Reader, digests: Iterable[str]) -> Invitation | None:
    """Return the invitation with one of these digests, unless it has ended or expired."""
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS} FROM invitations
        WHERE digest IN each($1) AND ended_at IS NULL AND expires_at > $2
        """,
        msgspec.json.encode(list(digests)).decode(), micros(),
    )  # fmt: skip
    return _record(row) if row else None


async def list_open(conn: Reader, *, organization_id: str | None) -> list[Invitation]:
    """Return the open invitations to an organization, or to the hub alone, newest first."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM invitations
        WHERE organization_id IS NOT DISTINCT FROM $1 AND ended_at IS NULL AND expires_at > $2
        ORDER BY id DESC
        """,
        organization_id, micros(),
    )  # fmt: skip
    return [_record(row) for row in rows]


async def end(conn: Connection, invitation_id: str, *, accepted_by: str | None = None) -> bool:
    """End an invitation; False when it has ended or expired already."""
    return await conn.execute(
        """
        UPDATE invitations SET ended_at = $1, accepted_by = $2
        WHERE id = $3 AND ended_at IS NULL AND expires_at > $1
        """,
        micros(), accepted_by, invitation_id,
    ) == 1  # fmt: skip


def _record(row: Row) -> Invitation:
    return Invitation(
        id=row["id"],
        organization_id=row["organization_id"],
        role=Role(row["role"]) if row["role"] else None,
        email=row["email"],
        creator_id=row["creator_id"],
        creator_name=row["creator_name"],
        created_at=from_micros(row["created_at"]),
        expires_at=from_micros(row["expires_at"]),
    )
