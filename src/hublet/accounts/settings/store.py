"""SQL of changes to e-mail addresses, of SSH keys, and of social handles."""

from hublet.accounts.records import UserEmail, UserSshKey
from hublet.accounts.users.store import EMAIL_COLUMNS, email_record
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row


async def find_email(conn: Reader, email_id: str) -> UserEmail | None:
    row = await conn.fetch_one(f"SELECT {EMAIL_COLUMNS} FROM emails WHERE id = $1", email_id)
    return email_record(row) if row else None


async def set_email_verified(conn: Connection, email_id: str, *, address: str) -> bool:
    """Set when an address was verified first; False when this id has no such address."""
    return await conn.execute(
        """
        UPDATE emails SET verified_at = COALESCE(verified_at, $3) WHERE id = $1 AND address = $2
        """,
        email_id, address, micros(),
    ) == 1  # fmt: skip


async def set_primary_email(conn: Connection, email_id: str, *, user_id: str) -> None:
    await conn.execute(
        "UPDATE emails SET is_primary = (id = $1) WHERE user_id = $2", email_id, user_id
    )


async def remove_email(conn: Connection, email_id: str) -> None:
    await conn.execute("DELETE FROM emails WHERE id = $1", email_id)


_SSH_KEY_COLUMNS = "id, user_id, title, type, data, fingerprint, created_at, last_used_at"


async def add_ssh_key(conn: Connection, key: UserSshKey) -> bool:
    """Add a key; False when it belongs to an account already."""
    return await conn.execute(
        f"""
        INSERT INTO ssh_keys ({_SSH_KEY_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, NULL)
        ON CONFLICT DO NOTHING
        """,
        key.id, key.user_id, key.title, key.type, key.data, key.fingerprint,
        to_micros(key.created_at),
    ) == 1  # fmt: skip


async def list_ssh_keys(conn: Reader, *, user_id: str) -> list[UserSshKey]:
    rows = await conn.fetch_all(
        f"SELECT {_SSH_KEY_COLUMNS} FROM ssh_keys WHERE user_id = $1 ORDER BY id", user_id
    )
    return [_ssh_key_record(row) for row in rows]


async def count_ssh_keys(conn: Reader, *, user_id: str) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM ssh_keys WHERE user_id = $1", user_id)
    return count


async def find_ssh_key(conn: Reader, key_id: str, *, user_id: str) -> UserSshKey | None:
    row = await conn.fetch_one(
        f"SELECT {_SSH_KEY_COLUMNS} FROM ssh_keys WHERE id = $1 AND user_id = $2", key_id, user_id
    )
    return _ssh_key_record(row) if row else None


async def set_ssh_key_used(conn: Connection, fingerprint: str) -> None:
    await conn.execute(
        "UPDATE ssh_keys SET last_used_at = $1 WHERE fingerprint = $2", micros(), fingerprint
    )


async def remove_ssh_key(conn: Connection, key_id: str) -> None:
    await conn.execute("DELETE FROM ssh_keys WHERE id = $1", key_id)


def _ssh_key_record(row: Row) -> UserSshKey:
    return UserSshKey(
        id=row["id"],
        user_id=row["user_id"],
        title=row["title"],
        type=row["type"],
        data=row["data"],
        fingerprint=row["fingerprint"],
        created_at=from_micros(row["created_at"]),
        last_used_at=from_micros(row["last_used_at"]) if row["last_used_at"] else None,
    )


async def list_social_handles(conn: Reader, account_id: str) -> dict[str, str]:
    """Return the handles of a user or an organization, by the name of the network."""
    rows = await conn.fetch_all(
        "SELECT network, handle FROM social_handles WHERE account_id = $1 ORDER BY network",
        account_id,
    )
    return {row["network"]: row["handle"] for row in rows}


async def set_social_handle(
    conn: Connection, account_id: str, *, network: str, handle: str
) -> None:
    """Store a handle; an empty one is removed."""
    if not handle:
        await conn.execute(
            "DELETE FROM social_handles WHERE account_id = $1 AND network = $2", account_id, network
        )
        return
    await conn.execute(
        """
        INSERT INTO social_handles (account_id, network, handle) VALUES ($1, $2, $3)
        ON CONFLICT (account_id, network) DO UPDATE SET handle = excluded.handle
        """,
        account_id, network, handle,
    )  # fmt: skip
