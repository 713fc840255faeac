"""Metadata of this database: single named values, such as the key ring it belongs to.

Values that are kept for a while have names in order, and are read and removed by ranges of them.
"""

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


async def list_range(conn: Reader, *, after: str, before: str, limit: int) -> list[tuple[str, str]]:
    """Return names between two, with their values, in the order of the names."""
    rows = await conn.fetch_all(
        "SELECT name, value FROM facts WHERE name > $1 AND name < $2 ORDER BY name LIMIT $3",
        after, before, limit,
    )  # fmt: skip
    return [(row["name"], row["value"]) for row in rows]


async def find_last(conn: Reader, *, after: str, before: str) -> str | None:
    """Return the last name between two."""
    last: str | None = await conn.fetch_value(
        "SELECT max(name) FROM facts WHERE name > $1 AND name < $2", after, before
    )
    return last


async def remove_range(conn: Connection, *, after: str, before: str) -> None:
    """Remove the values whose names are between two."""
    await conn.execute("DELETE FROM facts WHERE name > $1 AND name < $2", after, before)
