"""SQL of authorization codes. Values never come here, only their digests."""

import json
from collections.abc import Sequence

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.oauth.codes.records import Code, NewCode
from hublet.oauth.permissions import as_text, permission_record

_COLUMNS = (
    "digest, app_id, user_id, redirect_uri, challenge, nonce, scopes, organization_ids, "
    "session_id, authenticated_at, address, agent, expires_at, used_at, access_id"
)


async def add(conn: Connection, code: NewCode, *, digest: str, expires_at: int) -> None:
    permission = code.permission
    await conn.execute(
        """
        INSERT INTO oauth_codes
            (digest, app_id, user_id, redirect_uri, challenge, nonce, scopes, organization_ids,
             session_id, authenticated_at, address, agent, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        """,
        digest, permission.app_id, permission.user_id, code.redirect_uri, code.challenge,
        code.nonce, as_text(permission.scopes), as_text(permission.organization_ids),
        code.session_id, to_micros(code.authenticated_at), code.address, code.agent, micros(),
        expires_at,
    )  # fmt: skip


async def find(conn: Reader, digests: Sequence[str]) -> Code | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM oauth_codes WHERE digest IN each($1)", json.dumps(digests)
    )
    return _record(row) if row else None


async def use(conn: Connection, digest: str, *, access_id: str | None) -> bool:
    """Mark a code as used; False when somebody else was faster."""
    return await conn.execute(
        """
        UPDATE oauth_codes SET used_at = $1, access_id = $2
        WHERE digest = $3 AND used_at IS NULL
        """,
        micros(), access_id, digest,
    ) == 1  # fmt: skip


async def remove_expired(conn: Connection, *, before: int) -> None:
    await conn.execute("DELETE FROM oauth_codes WHERE expires_at < $1", before)


def _record(row: Row) -> Code:
    return Code(
        digest=row["digest"],
        content=NewCode(
            permission=permission_record(row),
            redirect_uri=row["redirect_uri"],
            challenge=row["challenge"],
            nonce=row["nonce"],
            session_id=row["session_id"],
            authenticated_at=from_micros(row["authenticated_at"]),
            address=row["address"],
            agent=row["agent"],
        ),
        expires_at=from_micros(row["expires_at"]),
        used_at=from_micros(row["used_at"]) if row["used_at"] else None,
        access_id=row["access_id"],
    )
