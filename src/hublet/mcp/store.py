"""SQL of the MCP tools of users."""

import json
from collections.abc import Iterable

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader
from hublet.repos.records import Repo
from hublet.repos.store import COLUMNS, OWNER, record


async def find_built_in(conn: Reader, *, user_id: str) -> list[str] | None:
    """Return the chosen tools; None: the user has never chosen."""
    names = await conn.fetch_value(
        "SELECT built_in_tools FROM mcp_settings WHERE user_id = $1", user_id
    )
    return None if names is None else json.loads(names)


async def set_built_in(conn: Connection, names: Iterable[str], *, user_id: str) -> None:
    await conn.execute(
        """
        INSERT INTO mcp_settings (user_id, built_in_tools, updated_at) VALUES ($1, $2, $3)
        ON CONFLICT (user_id) DO UPDATE
        SET built_in_tools = excluded.built_in_tools, updated_at = excluded.updated_at
        """,
        user_id, json.dumps(list(names)), micros(),
    )  # fmt: skip


async def list_spaces(conn: Reader, *, user_id: str) -> list[Repo]:
    """Return the chosen spaces of a user in their order, also those that the user cannot see."""
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS} FROM mcp_space_tools t JOIN repos r ON r.id = t.repo_id {OWNER}
        WHERE t.user_id = $1 ORDER BY t.position
        """,
        user_id,
    )
    return [record(row) for row in rows]


async def set_spaces(conn: Connection, space_ids: Iterable[str], *, user_id: str) -> None:
    await conn.execute("DELETE FROM mcp_space_tools WHERE user_id = $1", user_id)
    await conn.execute_many(
        "INSERT INTO mcp_space_tools (user_id, repo_id, position) VALUES ($1, $2, $3)",
        [(user_id, space_id, position) for position, space_id in enumerate(space_ids)],
    )
