"""SQL of credentials for other registries."""

from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader, Row
from hublet.registry.records import RegistryCredential

_COLUMNS = "owner_id, host, username, secret, created_at"


async def put(conn: Connection, *, owner_id: str, host: str, username: str, secret: str) -> None:
    """Add the credentials of an owner for a registry, or replace those that are there."""
    await conn.execute(
        """
        INSERT INTO registry_credentials (owner_id, host, username, secret, created_at)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (owner_id, host) DO UPDATE SET username = excluded.username,
            secret = excluded.secret, created_at = excluded.created_at
        """,
        owner_id, host, username, secret, micros(),
    )  # fmt: skip


async def find(conn: Reader, *, owner_id: str, host: str) -> RegistryCredential | None:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM registry_credentials WHERE owner_id = $1 AND host = $2",
        owner_id, host,
    )  # fmt: skip
    return None if row is None else _credential(row)


async def list_of(conn: Reader, *, owner_id: str) -> list[RegistryCredential]:
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM registry_credentials WHERE owner_id = $1 ORDER BY host", owner_id
    )
    return [_credential(row) for row in rows]


async def remove(conn: Connection, *, owner_id: str, host: str) -> bool:
    return (
        await conn.execute(
            "DELETE FROM registry_credentials WHERE owner_id = $1 AND host = $2", owner_id, host
        )
        > 0
    )


def _credential(row: Row) -> RegistryCredential:
    return RegistryCredential(
        owner_id=row["owner_id"],
        host=row["host"],
        username=row["username"],
        sealed_secret=row["secret"],
        created_at=from_micros(row["created_at"]),
    )
