"""Backups: a hub as one archive, made while it runs.

The database is written first, as it was at one moment, and the content after it. Content never
changes and a hold keeps it from being removed, so everything that the database names is in the
archive; what came later may be in it too, and is pruned.
"""

import asyncio
import io
import json
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from hublet import __version__
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.database.table_copy import open_snapshot
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.startup import KEYS_FILE, UNFINISHED_RESTORE, CannotStart
from hublet.storage import removals
from hublet.storage.backup_archive import (
    ArchiveBroken,
    ArchiveMember,
    ArchiveUnreachable,
    ArchiveWriter,
    create_archive,
    is_bucket,
    open_archive,
    read_members,
)
from hublet.storage.object_store import has_shared_store, open_store

FORMAT = 1
_HEADER = "backup.json"
_KEYS = f"keys/{KEYS_FILE}"
SETTINGS_FILE = "hublet.toml"
# Content that every node can reach.
STORE_KINDS = ("blobs", "xorbs", "parts", "packs", "logs")
# Parts of the data folder that are in the archive otherwise, are made anew, or belong to one machine.
_LEFT_OUT = frozenset({
    "hub.db", "hub.db-wal", "hub.db-shm", KEYS_FILE, SETTINGS_FILE, "first-administrator.json",
    ".writable", "lost+found", "cache", "workers", "blobs/incoming", "jobs/runners", "jobs/images",
    "jobs/volumes", "jobs/networks", UNFINISHED_RESTORE,
})  # fmt: skip
_CONTENT = frozenset({"repos", "blobs", "xorbs", "parts", "packs", "logs"})
_EXTEND_SECONDS = 60.0
_SMALL_BYTES = 1 << 20


class BackupRefused(CannotStart):
    """There is no backup to make or to restore here. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSummary:
    """What is in an archive."""

    created_at: str
    version: str
    engine: str
    schema: int
    rows: int
    members: int
    bytes: int
    has_keys: bool
    has_content: bool
    # Objects whose bytes are not those of their name.
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupChoice:
    keys: bool = True
    content: bool = True


async def back_up(
    database: Database,
    location: str,
    choice: BackupChoice,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> BackupSummary:
    """Write an archive of the whole hub, which may run meanwhile."""
    _check_outside(location, database.hub.settings.database.data_dir)
    async with _held(database):
        return await _Backup(database, choice, on_progress).run(location)


def _check_outside(location: str, folder: Path) -> None:
    if not is_bucket(location) and Path(location).absolute().is_relative_to(folder.absolute()):
        raise BackupRefused(
            f"{location} lies in the data folder: a backup belongs elsewhere, best on another disk."
        )


@asynccontextmanager
async def _held(database: Database) -> AsyncIterator[None]:
    """Keep content from being removed until the end of the block."""
    holder = new_object_id()

    async def extend() -> None:
        async with database.transaction() as conn:
            await removals.hold(conn, holder)

    async def keep_extending() -> None:
        while True:
            await asyncio.sleep(_EXTEND_SECONDS)
            await extend()

    await extend()
    keeping = asyncio.create_task(keep_extending(), name="hold")
    try:
        yield
        if keeping.done():
            # It failed: content may have been removed.
            keeping.result()
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        async with database.transaction() as conn:
            await removals.release_hold(conn, holder)


class _Backup:
    def __init__(
        self, database: Database, choice: BackupChoice, on_progress: Callable[[int, int], None]
    ) -> None:
        self._database = database
        self._settings = database.hub.settings
        self._choice = choice
        self._on_progress = on_progress
        self._damaged: list[str] = []

    async def run(self, location: str) -> BackupSummary:
        with archive_errors(location), create_archive(location) as archive:
            summary = await self._write_database(archive)
            if self._choice.keys:
                await asyncio.to_thread(self._write_keys, archive)
            await asyncio.to_thread(self._write_folder, archive)
            if self._choice.content and has_shared_store(self._settings):
                await asyncio.to_thread(self._write_store, archive)
            return replace(
                summary,
                members=archive.members,
                bytes=archive.bytes,
                damaged=tuple(self._damaged),
            )

    async def _write_database(self, archive: ArchiveWriter) -> BackupSummary:
        folder = self._settings.database.data_dir
        async with open_snapshot(self._database) as snapshot:
            header = {
                "format": FORMAT,
                "version": __version__,
                "createdAt": clock.now().isoformat(),
                "engine": self._database.kind,
                "migrations": snapshot.migrations,
                "tables": {table.name: table.columns for table in snapshot.tables},
                "partitions": snapshot.partitions,
                "keys": self._choice.keys,
                "keyRing": self._database.hub.keys.fingerprint(),
                "content": self._choice.content,
                "sharedStore": has_shared_store(self._settings),
            }
            archive.add_bytes(_HEADER, json.dumps(header).encode())
            rows = 0
            for table in snapshot.tables:
                with tempfile.TemporaryFile(dir=folder) as file:
                    rows += await snapshot.write(table, cast("BinaryIO", file))
                    size = file.tell()
                    file.seek(0)
                    name = f"database/{table.name}"
                    await asyncio.to_thread(archive.add_file, name, file, size=size)
                self._on_progress(archive.members, archive.bytes)
        return _summary(header, rows=rows)

    def _write_keys(self, archive: ArchiveWriter) -> None:
        archive.add_bytes(_KEYS, self._database.hub.keys.render().encode())
        with suppress(FileNotFoundError):
            settings = (self._settings.database.data_dir / SETTINGS_FILE).read_bytes()
            archive.add_bytes(f"keys/{SETTINGS_FILE}", settings)

    def _write_folder(self, archive: ArchiveWriter) -> None:
        root = self._settings.database.data_dir.absolute()
        left_out = _LEFT_OUT | _database_files(self._settings)
        if not self._choice.content or has_shared_store(self._settings):
            left_out |= _CONTENT
        for path in _walk(root, root, left_out):
            if _is_repository(path, root):
                self._write_repository(archive, root, path)
            else:
                self._write_path(archive, root, path)

    def _write_repository(self, archive: ArchiveWriter, root: Path, repo: Path) -> None:
        """Add a repository that may be repacked meanwhile: new packs appear before old files go.

        Packs come last, so that what was loose when it was looked for and is not any more is in one.
        """
        known: set[Path] = set()
        while True:
            found = [repo, *_walk(repo, root, frozenset())]
            found.sort(key=lambda path: path.is_relative_to(repo / "objects" / "pack"))
            fresh = [path for path in found if path not in known]
            known.update(fresh)
            written = [self._write_path(archive, root, path) for path in fresh]
            if all(written):
                return

    def _write_path(self, archive: ArchiveWriter, root: Path, path: Path) -> bool:
        """Add a file or a folder; return whether it was still there."""
        name = f"files/{path.relative_to(root).as_posix()}"
        try:
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                archive.add_folder(name, mode=stat.S_IMODE(status.st_mode))
            elif stat.S_ISREG(status.st_mode):
                self._write_file(archive, name, path)
        except FileNotFoundError:
            return False
        self._on_progress(archive.members, archive.bytes)
        return True

    def _write_file(self, archive: ArchiveWriter, name: str, path: Path) -> None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            size, source = status.st_size, cast("BinaryIO", file)
            if size <= _SMALL_BYTES:
                # It may be written anew while it is read.
                data = file.read()
                size, source = len(data), io.BytesIO(data)
            mode = stat.S_IMODE(status.st_mode)
            digest = archive.add_file(name, source, size=size, mode=mode)
        if name.startswith("files/blobs/") and digest != path.name:
            self._damaged.append(f"blobs/{path.name}")

    def _write_store(self, archive: ArchiveWriter) -> None:
        store = open_store(self._settings)
        for kind in STORE_KINDS:
            for each in store.list(kind):
                pieces = store.pieces(each.key, 0, each.size)
                archive.add_pieces(f"store/{kind}/{each.key.name}", pieces, size=each.size)
                self._on_progress(archive.members, archive.bytes)


def _database_files(settings: Settings) -> frozenset[str]:
    name = Path(settings.database_url.removeprefix("sqlite:///")).name
    return frozenset(name + suffix for suffix in ("", "-wal", "-shm"))


def _walk(folder: Path, root: Path, left_out: frozenset[str]) -> Iterator[Path]:
    """Yield what lies below a folder, each folder before what it holds; no links, no repository."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        path = Path(entry.path)
        place = path.relative_to(root)
        if entry.is_symlink() or place.as_posix() in left_out or _is_attempt(place):
            continue
        yield path
        if entry.is_dir(follow_symlinks=False) and not _is_repository(path, root):
            yield from _walk(path, root, left_out)


def _is_repository(path: Path, root: Path) -> bool:
    return path.suffix == ".git" and path.parent.parent == root / "repos"


def _is_attempt(place: Path) -> bool:
    # What an attempt of a job worked with; its log lies beside it.
    return place.parts[0] == "jobs" and place.name.startswith("attempt-")


async def verify(
    location: str, on_progress: Callable[[int, int], None] = lambda *_: None
) -> BackupSummary:
    """Read an archive to its end, and compare every member with what was written."""
    return await asyncio.to_thread(_verify, location, on_progress)


def _verify(location: str, on_progress: Callable[[int, int], None]) -> BackupSummary:
    counts = ArchiveCounts(on_progress)
    with archive_errors(location), open_archive(location) as file:
        members = read_members(file)
        header = counts.read_header(members)
        for member in members:
            counts.add(member, sum(piece.count(b"\n") for piece in member.pieces()))
    return counts.summary(header)


class ArchiveCounts:
    """What was read of an archive."""

    def __init__(self, on_progress: Callable[[int, int], None]) -> None:
        self._on_progress = on_progress
        self._rows, self._members, self._bytes = 0, 0, 0

    def read_header(self, members: Iterator[ArchiveMember]) -> dict[str, Any]:
        first = next(members, None)
        if first is None or first.name != _HEADER:
            raise ArchiveBroken("it does not begin as a backup does")
        header: dict[str, Any] = json.loads(first.data.read())
        if header["format"] != FORMAT:
            raise BackupRefused(
                f"The backup was made by Hublet {header['version']} in a format that this version "
                "does not know: restore it with that version."
            )
        self.add(first, 0)
        return header

    def add(self, member: ArchiveMember, lines: int) -> None:
        self._members += 1
        self._bytes += member.size
        if member.name.startswith("database/"):
            self._rows += lines
        self._on_progress(self._members, self._bytes)

    def summary(self, header: dict[str, Any]) -> BackupSummary:
        found = _summary(header, rows=self._rows)
        return replace(found, members=self._members, bytes=self._bytes)


def _summary(header: dict[str, Any], *, rows: int) -> BackupSummary:
    return BackupSummary(
        created_at=header["createdAt"],
        version=header["version"],
        engine=header["engine"],
        schema=max(map(int, header["migrations"])),
        rows=rows,
        members=0,
        bytes=0,
        has_keys=header["keys"],
        has_content=header["content"],
    )


@contextmanager
def archive_errors(location: str) -> Iterator[None]:
    name = location.partition("?")[0]
    try:
        yield
    except ArchiveBroken as error:
        raise BackupRefused(f"{name} cannot be used: {error}. Take another backup.") from error
    except ArchiveUnreachable as error:
        raise BackupRefused(str(error)) from error
    except OSError as error:
        raise BackupRefused(
            f"{error.filename or name} cannot be read or written ({error.strerror})."
        ) from error
