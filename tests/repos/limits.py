"""A limit of storage for tests."""

from dataclasses import replace

from hublet.core.database import Database


async def set_limit(database: Database, limit: int | None) -> None:
    settings = database.hub.settings
    limits = replace(settings.limits, owner_bytes=limit)
    database.hub = replace(database.hub, settings=replace(settings, limits=limits))
    # On SQLite all readers are one.
    async with database.read() as conn:
        conn.hub = database.hub
