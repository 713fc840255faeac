"""Start of a hub: opens its data folder, its keys and its database."""

import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from hublet.core import metadata
from hublet.core.config import Settings, safe_database_url
from hublet.core.database import Database, DatabaseUnavailable, Reader, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing, WrongKeys

KEYS_FILE = "secret.keys"
# What a restore leaves in the data folder until it is done.
UNFINISHED_RESTORE = "restore-unfinished"
# The metadata that says which key ring a database belongs to.
KEY_RING_NAME = "key_ring"

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600
# Others below the data folder belong to jobs, whose users must reach them.
_PRIVATE_FOLDERS = ("repos", "blobs", "xorbs", "parts", "mail", "cache")


class CannotStart(Exception):
    """The hub cannot start. The message is one sentence that says what to do."""


def load_keys(settings: Settings) -> KeyRing:
    if settings.keys.ring is not None:
        return KeyRing.parse(settings.keys.ring)
    return KeyRing.load_or_create(settings.database.data_dir / KEYS_FILE)


async def keys_fit(conn: Reader) -> bool:
    """Tell whether the key ring can read this database; a new database fits every ring."""
    known = await metadata.find(conn, KEY_RING_NAME)
    return known is None or known in conn.hub.keys.fingerprints()


def open_folder(folder: Path) -> None:
    """Create the data folder, or close one that is there: it is for its owner's eyes only."""
    check_writable(folder)
    check_restore_ended(folder)
    close_folder(folder)


def check_restore_ended(folder: Path) -> None:
    if (folder / UNFINISHED_RESTORE).exists():
        raise CannotStart(
            f"A restore into {folder} did not end: empty the folder, and its shared store and its "
            "database elsewhere if it has such, and run `hublet restore` again."
        )


def check_writable(folder: Path) -> None:
    """Create the folder if need be. Raises CannotStart."""
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        # The processes of one command look at the same time.
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise CannotStart(
            f"The data folder {folder} cannot be written ({error.strerror}): choose another with "
            "--data-dir, or give this user the right to write there."
        ) from error


def close_folder(folder: Path) -> None:
    """Take from other users what lies in the data folder: databases, keys, repositories."""
    inside = [each for each in folder.iterdir() if not each.is_symlink()]
    for path in [folder, *(folder / name for name in _PRIVATE_FOLDERS)]:
        if path == folder or path in inside:
            _close(path, _FOLDER_MODE)
    for path in inside:
        if path.is_file():
            _close(path, _FILE_MODE)


def _close(path: Path, mode: int) -> None:
    try:
        if stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            path.chmod(mode)
    except FileNotFoundError:
        # Another process has removed it, such as a file of SQLite's.
        return
    except OSError as error:
        raise CannotStart(
            f"{path} is open to other users, and this one may not close it ({error.strerror}): run "
            f"chmod {mode:o} {path} as its owner, or choose a folder of your own with --data-dir."
        ) from error


@asynccontextmanager
async def open_hub(settings: Settings) -> AsyncIterator[Database]:
    """Open the data folder, the keys and the database; the schema is not touched."""
    if settings.database.pgbouncer and settings.database.listen_url is None:
        raise CannotStart(
            "database.listen_url is missing: with database.pgbouncer it must name PostgreSQL itself, "
            "because notices between processes do not pass PgBouncer."
        )
    folder = settings.database.data_dir
    open_folder(folder)
    had_keys = (folder / KEYS_FILE).exists()
    hub = Hub(settings=settings, keys=load_keys(settings))
    async with _open_database(hub) as database:
        # SQLite may just have made its file, and gives those beside it the same mode.
        close_folder(folder)
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
