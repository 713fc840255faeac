"""Metadata of this database: single named values, such as the key ring it belongs to."""

from hublet.core.database import Connection, Reader


async def find(conn: Reader, name: str) -> str | None:
    value: str | None = await conn.fetch_value("SELECT value FROM facts WHERE name = $1", name)
    return value


async def set_value(conn: Connection, name: str, value: str) -> None:
    await conn.execute(
        """
        INSERT INTO facts (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """,
        name, value,
    )  # fmt: skip


async def find_or_add(conn: Connection, name: str, value: str) -> str:
    """Return a value; where there is none, this one is it from now on."""
    await conn.execute(
        "INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        name, value,
    )  # fmt: skip
    return await find(conn, name) or value
