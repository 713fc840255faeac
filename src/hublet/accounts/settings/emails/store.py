"""SQL of changes to e-mail addresses."""

from hublet.core.database import Connection


async def set_primary(conn: Connection, email_id: str, *, user_id: str) -> None:
    await conn.execute(
        "UPDATE emails SET is_primary = (id = $1) WHERE user_id = $2", email_id, user_id
    )


async def remove(conn: Connection, email_id: str) -> None:
    await conn.execute("DELETE FROM emails WHERE id = $1", email_id)
