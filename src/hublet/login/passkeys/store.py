"""SQL of passkeys, and of the challenges that were answered."""

from datetime import datetime

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.login.records import Passkey

_COLUMNS = "id, credential_id, user_id, name, public_key, sign_count, created_at, last_used_at"


async def add(conn: Connection, passkey: Passkey) -> bool:
    """Add a passkey; False when somebody has it already."""
    return await conn.execute(
        """
        INSERT INTO passkeys (id, credential_id, user_id, name, public_key, sign_count, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
        """,
        passkey.id, passkey.credential_id, passkey.user_id, passkey.name, passkey.public_key,
        passkey.sign_count, to_micros(passkey.created_at),
    ) == 1  # fmt: skip


async def find_by_credential_id(conn: Reader, credential_id: str) -> Passkey | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM passkeys WHERE credential_id = $1", credential_id
    )
    return _record(row) if row else None


async def list_of(conn: Reader, *, user_id: str) -> list[Passkey]:
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM passkeys WHERE user_id = $1 ORDER BY id", user_id
    )
    return [_record(row) for row in rows]


async def set_used(conn: Connection, passkey: Passkey, *, sign_count: int) -> bool:
    """Note a use; False when the passkey was removed or used otherwise in the meantime."""
    return await conn.execute(
        """
        UPDATE passkeys SET sign_count = $1, last_used_at = $2
        WHERE id = $3 AND sign_count = $4
        """,
        sign_count, micros(), passkey.id, passkey.sign_count,
    ) == 1  # fmt: skip


async def set_name(conn: Connection, passkey_id: str, name: str, *, user_id: str) -> bool:
    return await conn.execute(
        "UPDATE passkeys SET name = $1 WHERE id = $2 AND user_id = $3", name, passkey_id, user_id
    ) == 1  # fmt: skip


async def remove(conn: Connection, passkey_id: str, *, user_id: str) -> bool:
    return await conn.execute(
        "DELETE FROM passkeys WHERE id = $1 AND user_id = $2", passkey_id, user_id
    ) == 1  # fmt: skip


async def use_challenge(conn: Connection, digest: str, *, expires_at: datetime) -> bool:
    """Note that a challenge was answered; False when it was before."""
    await conn.execute("DELETE FROM passkey_challenges WHERE expires_at <= $1", micros())
    return await conn.execute(
        """
        INSERT INTO passkey_challenges (digest, expires_at) VALUES ($1, $2)
        ON CONFLICT DO NOTHING
        """,
        digest, to_micros(expires_at),
    ) == 1  # fmt: skip


def _record(row: Row) -> Passkey:
    return Passkey(
        id=row["id"],
        credential_id=row["credential_id"],
        user_id=row["user_id"],
        name=row["name"],
        public_key=bytes(row["public_key"]),
        sign_count=row["sign_count"],
        created_at=from_micros(row["created_at"]),
        last_used_at=from_micros(row["last_used_at"]) if row["last_used_at"] else None,
    )
