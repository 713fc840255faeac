"""Start of a hub: opens its data folder, its keys and its database."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from hublet.core.config import Settings, safe_database_url
from hublet.core.database import Database, DatabaseUnavailable, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing, WrongKeys

KEYS_FILE = "secret.keys"


class CannotStart(Exception):
    """The hub cannot start. The message is one sentence that says what to do."""


def load_keys(settings: Settings) -> KeyRing:
    if settings.keys.ring is not None:
        return KeyRing.parse(settings.keys.ring)
    return KeyRing.load_or_create(settings.database.data_dir / KEYS_FILE)


def open_folder(folder: Path) -> None:
    """Create the data folder, for its owner's eyes only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CannotStart(
            f"The data folder {folder} cannot be written ({error.strerror}): choose another with "
            "--data-dir, or give this user the right to write there."
        ) from error


@asynccontextmanager
async def open_hub(settings: Settings) -> AsyncIterator[Database]:
    """Open the data folder, the keys and the database; the schema is not touched."""
    folder = settings.database.data_dir
    open_folder(folder)
    had_keys = (folder / KEYS_FILE).exists()
    hub = Hub(settings=settings, keys=load_keys(settings))
    async with _open_database(hub) as database:
        try:
            yield database
        except WrongKeys:
            # New keys beside an old database would only hide that its own are missing.
            if not had_keys:
                (folder / KEYS_FILE).unlink(missing_ok=True)
            raise


@asynccontextmanager
async def _open_database(hub: Hub) -> AsyncIterator[Database]:
    async with AsyncExitStack() as stack:
        try:
            database = await stack.enter_async_context(open_database(hub))
        except DatabaseUnavailable as error:
            raise CannotStart(
                f"The database {safe_database_url(hub.settings.database_url)} cannot be opened "
                f"({' '.join(error.reason.split())}): see that it runs and lets this user in, or "
                "name another with --database-url."
            ) from error
        yield database
