"""Opening a database by its URL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hublet.core.database.engine import Database
from hublet.core.hub import Hub


@asynccontextmanager
async def open_database(hub: Hub) -> AsyncIterator[Database]:
    """Open the database that the settings name; the schema is not touched."""
    database = await _connect(hub)
    try:
        yield database
    finally:
        await database.close()


async def _connect(hub: Hub) -> Database:
    # Only the engine in use is imported: the other one costs start-up time and memory.
    url = hub.settings.database_url
    if url.startswith("sqlite:///"):
        from hublet.core.database.sqlite import SqliteDatabase  # noqa: PLC0415

        return SqliteDatabase(hub, Path(url.removeprefix("sqlite:///")))

    from hublet.core.database.postgresql import PostgresDatabase  # noqa: PLC0415

    database = PostgresDatabase(hub, url)
    await database.start()
    return database
