"""SQL of the signing keys."""

import json

from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader
from hublet.oauth.records import SigningKey


async def add(conn: Connection, key: SigningKey) -> None:
    await conn.execute(
        """
        INSERT INTO oauth_keys (id, sealed_private, public, created_at, signs_from)
        VALUES ($1, $2, $3, $4, $5)
        """,
        key.id, key.sealed_private, json.dumps(key.public), to_micros(key.created_at),
        to_micros(key.signs_from),
    )  # fmt: skip


async def list_all(conn: Reader) -> list[SigningKey]:
    """Return the keys, those first that sign last."""
    rows = await conn.fetch_all(
        """
        SELECT id, sealed_private, public, created_at, signs_from FROM oauth_keys
        ORDER BY signs_from DESC, id
        """
    )
    return [
        SigningKey(
            id=row["id"],
            sealed_private=bytes(row["sealed_private"]),
            public=json.loads(row["public"]),
            created_at=from_micros(row["created_at"]),
            signs_from=from_micros(row["signs_from"]),
        )
        for row in rows
    ]


async def remove(conn: Connection, key_id: str) -> None:
    await conn.execute("DELETE FROM oauth_keys WHERE id = $1", key_id)
