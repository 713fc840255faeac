"""Local hub of a command: its event loop, its database, and lists read page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from hublet.core.config import Settings
    from hublet.core.database import Database


T = TypeVar("T")


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, on uvloop if it is installed."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


@asynccontextmanager
async def open_local_hub(settings: "Settings", *, prepare: bool) -> AsyncIterator["Database"]:
    """Open the database; an empty one is prepared or refused, an outdated one always refused.

    No administrator is created: the first `hublet serve` does that.
    """
    import hublet.reactions  # noqa: F401 - a command may publish events, and some react at once
    from hublet.core.database.migrations import (
        SchemaError,
        known_migrations,
        migrate,
        pending_migrations,
    )
    from hublet.core.logs import configure
    from hublet.core.startup import open_hub
    from hublet.first_start import claim

    # Without this, log records would go to standard output, among the data.
    configure(settings.logs, prefix=settings.tokens.prefix)
    if not prepare and _is_empty(settings):
        raise _no_hub_error(settings)
    async with open_hub(settings) as database:
        missing = await pending_migrations(database)
        if 0 < len(missing) < len(known_migrations()):
            raise SchemaError(
                f"The database is older than this version (it lacks {', '.join(missing)}): run "
                "hublet migrate first."
            )
        if missing:
            if not prepare:
                raise _no_hub_error(settings)
            await migrate(database)
        async with database.transaction() as conn:
            await claim(conn)
        yield database


def _is_empty(settings: "Settings") -> bool:
    """Return whether no hub is here, without creating a file."""
    folder = settings.database.data_dir
    if settings.database.url is not None or (folder.exists() and not folder.is_dir()):
        return False
    return not (folder / "hub.db").exists()


def _no_hub_error(settings: "Settings") -> Exception:
    from hublet.core.config import safe_database_url
    from hublet.core.startup import CannotStart

    database = settings.database.url
    location = settings.database.data_dir if database is None else safe_database_url(database)
    return CannotStart(
        f"There is no hub in {location}: name the place of another with --data-dir or --database-url, "
        "or start one here with `hublet serve`."
    )


async def read_all_pages(
    page: Callable[[str], Awaitable[list[T]]], id_of: Callable[[T], str]
) -> list[T]:
    """Return all items, read page by page until one is empty."""
    items: list[T] = []
    while batch := await page(id_of(items[-1]) if items else ""):
        items += batch
    return items
