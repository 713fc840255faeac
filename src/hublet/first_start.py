"""First start of a hub: migrates the database, checks its keys, creates the first administrator."""

import asyncio
from collections.abc import Iterator
from itertools import count

from hublet.accounts.errors import NameTaken
from hublet.accounts.passwords import new_password
from hublet.accounts.records import User
from hublet.accounts.users import service as accounts
from hublet.core import metadata
from hublet.core.database import Connection, Database, Reader, partitions
from hublet.core.database.migrations import migrate
from hublet.core.dataclasses import dataclass
from hublet.core.machine import FOLDER_ID_FILE, load_folder_id
from hublet.core.sealing import WrongKeys
from hublet.core.startup import KEY_RING_NAME, CannotStart, keys_fit
from hublet.jobs import reactions as job_logs
from hublet.notifications.mail import digest
from hublet.oauth import pruning as oauth_pruning
from hublet.oauth import signing_keys
from hublet.oauth.apps import service as oauth_apps
from hublet.registry import collection as registry
from hublet.repos import name_backfill, scrubber
from hublet.repos import pruning as repositories
from hublet.repos.browse import list_index
from hublet.repos.packs import store as packs_store
from hublet.runtime.volumes import checkouts as job_volumes
from hublet.search import index as search_index
from hublet.search import text_index as search_texts
from hublet.storage import chunker
from hublet.storage.object_store import has_shared_store
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole
from hublet.webhooks.activity import partitions_store
from hublet.webhooks.activity import service as deliveries

ADMINISTRATOR = "admin"
# The metadata that says which data folder a database belongs to.
DATA_FOLDER_NAME = "data_folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAdministrator:
    """Shown once; afterwards only digests are left."""

    name: str
    password: str
    token: str


async def _check_store(conn: Reader) -> None:
    if not has_shared_store(conn.hub.settings) and await packs_store.has_lists(conn):
        raise CannotStart(
            "Content of this hub lies in a shared store, and storage.url is not set: set it as it was, "
            "or move the content to the data folder first."
        )


async def prepare(
    database: Database, *, creates_administrator: bool = True
) -> FirstAdministrator | None:
    """Make the database ready; return the administrator when this start had to create one.

    Whoever has nobody to show the password to leaves that to the next process.
    """
    await migrate(database)
    await partitions.add_days(database, partitions_store.TABLES)
    async with database.transaction() as conn:
        await claim(conn)
        await _check_store(conn)
        await repositories.schedule_orphan_removal(conn)
        await repositories.schedule_blob_pruning(conn)
        await registry.schedule_collection(conn)
        await scrubber.schedule(conn)
        await chunker.schedule_cutting(conn)
        await job_volumes.add_prune_task(conn)
        await job_logs.schedule_sweep(conn)
        await deliveries.schedule_pruning(conn)
        await digest.schedule(conn)
        await signing_keys.schedule_replacement(conn)
        await oauth_pruning.schedule(conn)
        await search_index.FILLING.schedule(conn)
        await search_texts.FILLING.schedule(conn)
        await list_index.schedule_filling(conn)
        await list_index.schedule_scores(conn)
        await name_backfill.schedule(conn)
        await oauth_apps.provision_command_line(conn)
        return await _create_missing_administrator(conn) if creates_administrator else None


async def provide_administrator(database: Database) -> FirstAdministrator | None:
    """Create an administrator where there is none, and return it to be shown at once."""
    async with database.transaction() as conn:
        await claim(conn)
        return await _create_missing_administrator(conn)


async def claim(conn: Connection) -> None:
    """Check the keys; until the transaction ends, no other process is in this place."""
    # Processes that start together must not create two administrators.
    await conn.lock("first start")
    await check_keys(conn)


async def check_keys(conn: Connection) -> None:
    """Remember which key ring the database belongs to; refuse a ring that cannot read it."""
    if not await keys_fit(conn):
        raise WrongKeys
    current = conn.hub.keys.fingerprint()
    if await metadata.find(conn, KEY_RING_NAME) != current:
        await metadata.set_value(conn, KEY_RING_NAME, current)


async def check_folder(database: Database) -> None:
    """Refuse a data folder that is not the one which the other nodes have. Raises CannotStart.

    Where content lies in a shared store, each node may have a folder of its own. On SQLite the
    database is in the folder.
    """
    settings = database.hub.settings
    if database.kind == "sqlite" or has_shared_store(settings):
        return
    folder = settings.database.data_dir
    folder_id = await asyncio.to_thread(load_folder_id, folder)
    async with database.transaction() as conn:
        known = await metadata.find_or_add(conn, DATA_FOLDER_NAME, folder_id)
    if known != folder_id:
        raise CannotStart(
            f"The data folder {folder} is not the one that this database belongs to, so it lacks "
            "repositories and files: give all nodes the same folder, or set storage.url; if this is "
            f"a copy of that folder, write {known} into its file {FOLDER_ID_FILE}."
        )


async def _create_missing_administrator(conn: Connection) -> FirstAdministrator | None:
    # An administrator who was disabled on purpose is not replaced.
    if await accounts.has_administrator(conn):
        return None
    password = new_password()
    user = await _create_under_a_free_name(conn, password=password)
    _, token = await tokens.issue(conn, user_id=user.id, name="first start", role=TokenRole.write)
    return FirstAdministrator(name=user.name, password=password, token=token)


async def _create_under_a_free_name(conn: Connection, *, password: str) -> User:
    for name in _names():
        try:
            return await accounts.create_user(conn, name, password=password, is_admin=True)
        except NameTaken:
            continue
    raise AssertionError("The names have no end.")


def _names() -> Iterator[str]:
    yield ADMINISTRATOR
    yield from (f"{ADMINISTRATOR}-{number}" for number in count(2))
