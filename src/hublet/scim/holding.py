"""One change of a directory at a time, whoever makes it."""

from hublet.core.database import Connection
from hublet.scim.records import Directory


async def hold(conn: Connection, directory: Directory) -> None:
    """Let nobody else read a user or group to change it, until the end of the transaction."""
    await conn.lock(f"scim of {directory.organization.id}")
