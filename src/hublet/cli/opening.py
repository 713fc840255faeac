"""Opening a hub for a command, whether or not a server runs on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hublet.core.config import Settings
    from hublet.core.database import Database


@asynccontextmanager
async def opened(settings: "Settings") -> AsyncIterator["Database"]:
    """Open the data; an empty database is prepared, an old one is left to its operator.

    No administrator is created: that is for the first `hublet serve` without one.
    """
    import hublet.reactions  # noqa: F401 - a command may publish facts, and some react at once
    from hublet.core.database.migrations import SchemaError, known_migrations, migrate, pending
    from hublet.core.logs import configure
    from hublet.core.opening import open_hub
    from hublet.first_start import claim

    # Before that a record would go to standard output, among the data.
    configure(settings.logs, prefix=settings.tokens.prefix)
    async with open_hub(settings) as database:
        missing = await pending(database)
        if 0 < len(missing) < len(known_migrations()):
            raise SchemaError(
                f"The database is older than this version (it lacks {', '.join(missing)}): run "
                "hublet migrate first."
            )
        if missing:
            await migrate(database)
        async with database.transaction() as conn:
            await claim(conn)
        yield database
