"""SQL of changes to e-mail addresses."""

from hublet.accounts.records import Email
from hublet.accounts.store import EMAIL, email_record
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader


async def find(conn: Reader, email_id: str) -> Email | None:
    row = await conn.fetch_one(f"SELECT {EMAIL} FROM emails WHERE id = $1", email_id)
    return email_record(row) if row else None


async def set_verified(conn: Connection, email_id: str, *, address: str) -> bool:
    """Note since when an address is verified; False when it is not there under this id."""
    return await conn.execute(
        """
        UPDATE emails SET verified_at = COALESCE(verified_at, $3) WHERE id = $1 AND address = $2
        """,
        email_id, address, micros(),
    ) == 1  # fmt: skip


async def set_primary(conn: Connection, email_id: str, *, user_id: str) -> None:
    await conn.execute(
        "UPDATE emails SET is_primary = (id = $1) WHERE user_id = $2", email_id, user_id
    )


async def remove(conn: Connection, email_id: str) -> None:
    await conn.execute("DELETE FROM emails WHERE id = $1", email_id)
