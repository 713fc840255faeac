"""Local files of queries: contents as files that a child may read, and a bounded cache for the rest.

A content that lies whole in the data folder is read where it is. What lies in git, in pieces or in an
object storage is written to the cache once, and removed when the cache is full or it was not used for
a week.
"""

import asyncio
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import BinaryIO

from hublet.core.clock import now, offset
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.repos import blobs_store
from hublet.repos.browse.records import Revision
from hublet.repos.errors import ContentMissing
from hublet.repos.git import trees
from hublet.repos.git.trees import GitEntry
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.storage.records import Content

_MAX_AGE_SECONDS = 7 * 24 * 3600
# What was used so lately may be about to be read.
_IN_USE_SECONDS = 900
_READABLE_BY_ALL = 0o004
_MODE = 0o644


class Abandoned(Exception):
    pass


class LocalFiles:
    """Cache of one data folder; all but `ensure` blocks on the disk."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.folder = settings.database.data_dir.absolute() / "sql"

    async def ensure(
        self, database: Database, revision: Revision, entries: Sequence[GitEntry]
    ) -> list[Path]:
        """Return a file of this machine for each entry, in the same order."""
        contents = await _contents(database, revision, entries)
        abandoned = Event()
        try:
            return await asyncio.to_thread(
                lambda: [self._ensure(revision, each, contents, abandoned) for each in entries]
            )
        finally:
            # A thread cannot be stopped: it looks at this after each piece.
            abandoned.set()

    def _ensure(
        self,
        revision: Revision,
        entry: GitEntry,
        contents: dict[str, Content],
        abandoned: Event,
    ) -> Path:
        if entry.lfs is None:
            return self.write_once(
                entry.oid, lambda file: _write_blob(file, revision.folder, entry.oid)
            )
        source = ContentSource(open_store(self._settings), contents[entry.lfs.sha256])
        if source.path is not None and _may_be_read(source.path):
            return source.path
        size = entry.size

        def write(file: BinaryIO) -> None:
            for piece in source.pieces(0, size):
                if abandoned.is_set():
                    raise Abandoned
                file.write(piece)

        return self.write_once(entry.lfs.sha256, write)

    def path_of(self, key: str) -> Path:
        name = sha256(key.encode()).hexdigest()
        return self.folder / name[:2] / name

    def find(self, key: str) -> Path | None:
        """Return a file of the cache, and mark it as used now."""
        path = self.path_of(key)
        moment = (now() - offset()).timestamp()
        try:
            os.utime(path, (moment, moment))
        except OSError:
            return None
        return path

    def write_once(self, key: str, write: Callable[[BinaryIO], None]) -> Path:
        """Return the file of a key, written by this function unless it is there."""
        if (found := self.find(key)) is not None:
            return found
        path = self.path_of(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="new-", delete=False) as file:
            part = Path(file.name)
            try:
                write(file)  # type: ignore[arg-type]
                file.flush()
                part.chmod(_MODE)
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        self.sweep()
        return path

    def sweep(self) -> None:
        """Remove what was not used for a week, and the oldest until the rest fits."""
        present = (now() - offset()).timestamp()
        kept = 0
        for used, size, path in sorted(_entries(self.folder), reverse=True):
            age = present - used
            kept += size
            if age > _MAX_AGE_SECONDS or (
                kept > self._settings.sql.cache_bytes and age > _IN_USE_SECONDS
            ):
                path.unlink(missing_ok=True)
                kept -= size


def _entries(folder: Path) -> Iterable[tuple[float, int, Path]]:
    for path in folder.glob("*/*"):
        with suppress(OSError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


async def _contents(
    database: Database, revision: Revision, entries: Sequence[GitEntry]
) -> dict[str, Content]:
    wanted = {entry.lfs.sha256 for entry in entries if entry.lfs is not None}
    if not wanted:
        return {}
    # A pointer can be written by anybody who knows a digest; that is no right to the content.
    async with database.read() as conn:
        found = await blobs_store.find_contents_in_repo(conn, revision.repo.id, wanted)
    for entry in entries:
        content = found.get(entry.lfs.sha256) if entry.lfs else None
        if entry.lfs and (content is None or content.size != entry.size):
            raise ContentMissing(entry.path)
    return found


def _write_blob(file: BinaryIO, folder: Path, oid: str) -> None:
    file.write(trees.read_blob(folder, oid))


def _may_be_read(path: Path) -> bool:
    """Tell whether the child may read a file: of a hub that is root it is another user."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and (os.geteuid() != 0 or bool(mode & _READABLE_BY_ALL))
