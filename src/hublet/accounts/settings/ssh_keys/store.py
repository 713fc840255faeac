"""SQL of SSH keys."""

from hublet.accounts.settings.ssh_keys.records import SshKey
from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row

_COLUMNS = "id, user_id, title, type, data, fingerprint, created_at"


async def add(conn: Connection, key: SshKey) -> bool:
    """Add a key; False when somebody has it already."""
    return await conn.execute(
        f"""
        INSERT INTO ssh_keys ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT DO NOTHING
        """,
        key.id, key.user_id, key.title, key.type, key.data, key.fingerprint,
        to_micros(key.created_at),
    ) == 1  # fmt: skip


async def list_of(conn: Reader, *, user_id: str) -> list[SshKey]:
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM ssh_keys WHERE user_id = $1 ORDER BY id", user_id
    )
    return [_record(row) for row in rows]


async def count_of(conn: Reader, *, user_id: str) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM ssh_keys WHERE user_id = $1", user_id)
    return count


async def find(conn: Reader, key_id: str, *, user_id: str) -> SshKey | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM ssh_keys WHERE id = $1 AND user_id = $2", key_id, user_id
    )
    return _record(row) if row else None


async def remove(conn: Connection, key_id: str) -> None:
    await conn.execute("DELETE FROM ssh_keys WHERE id = $1", key_id)


def _record(row: Row) -> SshKey:
    return SshKey(
        id=row["id"],
        user_id=row["user_id"],
        title=row["title"],
        type=row["type"],
        data=row["data"],
        fingerprint=row["fingerprint"],
        created_at=from_micros(row["created_at"]),
    )
