"""SQL of repository settings."""

from hublet.core.database import Connection
from hublet.repos.settings.records import SettingsChange


async def change(conn: Connection, repo_id: str, wanted: SettingsChange) -> None:
    """Change what is wanted and nothing else, so that two changes at once both count."""
    await conn.execute(
        """
        UPDATE repos SET
            visibility = coalesce($2, visibility),
            gated = CASE WHEN $3 THEN $4 ELSE gated END,
            discussions_disabled = coalesce($5, discussions_disabled)
        WHERE id = $1
        """,
        repo_id, wanted.visibility, wanted.gated is not None, wanted.gated or None,
        wanted.discussions_disabled,
    )  # fmt: skip


async def set_resource_group(conn: Connection, repo_id: str, group_id: str | None) -> None:
    await conn.execute("UPDATE repos SET resource_group_id = $2 WHERE id = $1", repo_id, group_id)
