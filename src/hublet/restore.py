"""Restore: makes a hub from an archive, where there is none.

The whole archive is read and verified first. The database comes last, in one transaction.
"""

import asyncio
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hublet.backups import (
    SETTINGS_FILE,
    STORE_KINDS,
    ArchiveCounts,
    BackupRefused,
    BackupSummary,
    archive_errors,
)
from hublet.core.config import Settings
from hublet.core.database import Connection, migrations, open_database
from hublet.core.database.table_copy import TableShape, is_empty, load_tables
from hublet.core.folders import remove_tree
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing, WrongKeys
from hublet.core.startup import (
    KEYS_FILE,
    UNFINISHED_RESTORE,
    check_restore_ended,
    close_folder,
    keys_fit,
    load_keys,
    open_folder,
)
from hublet.storage import removals
from hublet.storage.backup_archive import ArchiveBroken, ArchiveMember, open_archive, read_members
from hublet.storage.epochs import begin_epoch
from hublet.storage.object_store import NEVER, ObjectKey, has_shared_store, open_store

# What may lie in the folder of a new hub: the rest of a file system, and what an operator brings.
_ALLOWED = {"lost+found", SETTINGS_FILE, KEYS_FILE}


async def restore(
    settings: Settings, location: str, on_progress: Callable[[int, int], None] = lambda *_: None
) -> BackupSummary:
    """Make a hub from an archive, where there is none; after a failure nothing is left of it."""
    folder = settings.database.data_dir
    check_restore_ended(folder)
    before = _list_folder(folder)
    await _check_database_is_empty(settings)
    await asyncio.to_thread(_check_store_is_empty, settings)
    open_folder(folder)
    (folder / UNFINISHED_RESTORE).mkdir()
    work = _Restore(settings, on_progress)
    try:
        summary = await work.unpack(location)
        await work.load()
    except BaseException:
        # The folder last: as long as it says that a restore did not end, the next one tells what to do.
        await asyncio.to_thread(work.remove_objects)
        _clear(folder, except_for=before)
        raise
    remove_tree(folder / UNFINISHED_RESTORE)
    close_folder(folder)
    return summary


def _list_folder(folder: Path) -> set[str]:
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if found := sorted(names - _ALLOWED):
        raise BackupRefused(
            f"{folder} is not empty (it has {', '.join(found[:3])}): a backup is restored where "
            "there is no hub; name another folder with --data-dir."
        )
    return names


def _clear(folder: Path, *, except_for: set[str]) -> None:
    for path in folder.iterdir():
        if path.name not in except_for:
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                path.unlink()


async def _check_database_is_empty(settings: Settings) -> None:
    if _is_sqlite(settings):
        used = _sqlite_path(settings).exists()
    else:
        # Nothing is sealed or opened here.
        hub = Hub(settings=settings, keys=KeyRing.new())
        async with open_database(hub) as database, database.read() as conn:
            used = not await is_empty(conn)
    if used:
        raise BackupRefused(
            "The database is not empty: a backup is restored where there is no hub; name another "
            "with --database-url."
        )


def _check_store_is_empty(settings: Settings) -> None:
    if not has_shared_store(settings):
        return
    store = open_store(settings)
    if any(next(iter(store.list(kind)), None) for kind in STORE_KINDS):
        raise BackupRefused(
            "The store is not empty: a backup is restored where there is no hub; name another "
            "bucket, prefix or folder as storage.url, or empty it if a restore that was killed has "
            "left that."
        )


def _is_sqlite(settings: Settings) -> bool:
    return settings.database_url.startswith("sqlite:")


def _sqlite_path(settings: Settings) -> Path:
    return Path(settings.database_url.removeprefix("sqlite:///"))


class _Restore:
    def __init__(self, settings: Settings, on_progress: Callable[[int, int], None]) -> None:
        self._settings = settings
        self._folder = settings.database.data_dir.absolute()
        self._staged = self._folder / UNFINISHED_RESTORE
        # The objects that were put, each noted before it is there: there may be millions.
        self._noted = self._staged / ".objects"
        self._is_cancelled = False
        self._counts = ArchiveCounts(on_progress)
        self._header: dict[str, Any] = {}

    async def unpack(self, location: str) -> BackupSummary:
        """Write everything but the database to its place; the rows wait until all is verified."""
        unpacking = asyncio.create_task(asyncio.to_thread(self._unpack_all, location))
        try:
            return await asyncio.shield(unpacking)
        except asyncio.CancelledError:
            # A thread cannot be cancelled, and what it still wrote would be left behind.
            self._is_cancelled = True
            await asyncio.gather(unpacking, return_exceptions=True)
            raise

    def _unpack_all(self, location: str) -> BackupSummary:
        with archive_errors(location), open_archive(location) as file:
            members = read_members(file)
            self._header = self._counts.read_header(members)
            self._check_header()
            for member in members:
                if self._is_cancelled:
                    break
                self._counts.add(member, self._unpack(member))
            os.sync()
        return self._counts.summary(self._header)

    def remove_objects(self) -> None:
        """Remove from the shared store what was put there, and nothing else."""
        if self._noted.exists():
            with self._noted.open() as lines:
                keys = (ObjectKey(*json.loads(line)) for line in lines)
                open_store(self._settings).delete(keys, before=NEVER)

    def _check_header(self) -> None:
        migrations.check_known({int(n): d for n, d in self._header["migrations"].items()})
        if self._header["sharedStore"] != has_shared_store(self._settings):
            raise BackupRefused(
                "The content of the backup was in a shared store, and storage.url is not set."
                if self._header["sharedStore"]
                else "The content of the backup was in the data folder: restore it without "
                "storage.url, and move it with `hublet storage move`."
            )
        has_keys = self._settings.keys.ring is not None or (self._folder / KEYS_FILE).exists()
        if not has_keys and not self._header["keys"]:
            raise BackupRefused(
                f"The backup has no keys: put the {KEYS_FILE} of the hub into {self._folder}, or set "
                "HUBLET_KEYS_RING."
            )
        if has_keys and self._header["keyRing"] not in load_keys(self._settings).fingerprints():
            raise WrongKeys

    def _unpack(self, member: ArchiveMember) -> int:
        """Write one member; return how many lines it has."""
        kind, _, name = member.name.partition("/")
        match kind:
            case "database":
                return _write(self._staged / name, member)
            case "keys" if name == KEYS_FILE and self._settings.keys.ring is not None:
                return 0
            case "keys":
                target = self._folder / (name if name == KEYS_FILE else f"{name}.of-the-backup")
                return 0 if target.exists() else _write(target, member)
            case "files":
                return _write(self._folder / name, member)
            case "store":
                return self._put(ObjectKey(*name.split("/", 1)), member)
        raise ArchiveBroken(f"it has the member {member.name}, which no backup has")

    def _put(self, key: ObjectKey, member: ArchiveMember) -> int:
        store = open_store(self._settings)
        with self._noted.open("a") as noted:
            noted.write(f"{json.dumps(key)}\n")
        with store.new_spool(hashed=False) as spool:
            spool.write_all(member.pieces())
            store.put(key, spool)
        return 0

    async def load(self) -> None:
        """Fill the database in one transaction; the file of SQLite gets its name after it."""
        settings, path = self._settings, _sqlite_path(self._settings)
        if _is_sqlite(settings):
            url = f"sqlite:///{self._staged}/.database"
            settings = replace(settings, database=replace(settings.database, url=url))
        hub = Hub(settings=settings, keys=load_keys(settings))
        async with open_database(hub) as database, database.transaction() as conn:
            await self._load(conn)
        if _is_sqlite(settings):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self._staged / ".database", path)
            path.chmod(0o600)

    async def _load(self, conn: Connection) -> None:
        await migrations.apply_schema(conn, {int(each) for each in self._header["migrations"]})
        if not _is_sqlite(self._settings):
            for statement in self._header["partitions"]:
                await conn.execute(statement)
        tables = [
            TableShape(name=name, columns=tuple(columns))
            for name, columns in self._header["tables"].items()
        ]
        await load_tables(conn, tables, lambda table: (self._staged / table.name).open("rb"))
        if not await keys_fit(conn):
            raise WrongKeys
        # Clients remember what they uploaded after the backup was made.
        await begin_epoch(conn)
        await removals.forget_hold(conn)


def _write(path: Path, member: ArchiveMember) -> int:
    if member.is_folder:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(member.mode | stat.S_IRWXU)
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = 0
    with path.open("xb") as file:
        os.fchmod(file.fileno(), member.mode)
        for piece in member.pieces():
            file.write(piece)
            lines += piece.count(b"\n")
    return lines
