"""Workspaces: bare repositories for the objects of one change, until a transaction lists their packs.

Without a shared store, the workspace is the folder of the repository itself, and nothing is uploaded.
With one, it is a folder of its own that reads the objects of the repository, too. Nobody else sees
what is written to it: its packs are uploaded, listed by the transaction that moves the refs, and then
moved to the cache of the node. Of a change that fails, or whose process dies, no node sees anything.
"""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.repos.git import bare_repos
from hublet.repos.git.objects import ObjectKind
from hublet.repos.git.packs import WORKSPACE_SUFFIX, PackWriter
from hublet.repos.packs import cache, store
from hublet.repos.packs.cache import UPLOADED, pack_key
from hublet.repos.records import NewPack, NewPacks
from hublet.storage.object_store import ObjectKey, ObjectStore, has_shared_store, open_store

# A smaller pack lies in its row, which saves two requests to the store.
SMALLEST_STORED = 64 << 10
# A larger one is not read into memory.
_LARGEST_IN_MEMORY = 8 << 20
_PIECE_BYTES = 1 << 20
_FAN_OUT = 8 + 255 * 4
_NAME_DIGITS = 8


class Workspace:
    """Where the objects of a change are written; `upload` before the transaction, `packs` in it."""

    def __init__(self, database: Database, repo_id: str, folder: Path) -> None:
        self._database = database
        self._repo_id = repo_id
        self.folder = folder
        # None without a shared store.
        self.packs: NewPacks | None = None

    async def refresh(self) -> None:
        """Let all be found that refs point to now."""
        if self.packs is not None:
            await cache.open_folder(self._database, self._repo_id)

    async def upload(self) -> NewPacks | None:
        """Make everything that was written durable where all nodes find it; return `packs`."""
        if self.packs is not None and self.packs.is_listed:
            objects = open_store(self._database.hub.settings)
            new = await asyncio.to_thread(upload_packs, objects, self._repo_id, self.folder)
            self.packs = NewPacks(is_listed=True, packs=self.packs.packs + new)
        return self.packs

    async def close(self) -> None:
        """Move what is listed now to the cache, and remove the rest."""
        if self.packs is None or not self.packs.is_listed:
            return
        try:
            if self.packs.packs:
                await self._keep()
        finally:
            await asyncio.to_thread(bare_repos.remove, self.folder)

    async def _keep(self) -> None:
        names = [pack.name for pack in self.packs.packs] if self.packs else []
        async with self._database.read() as conn:
            listed = await store.find_known(conn, self._repo_id, names)
        if listed:
            await cache.adopt(self._database, self._repo_id, self.folder, listed)


@asynccontextmanager
async def open_workspace(
    database: Database, repo_id: str, *, is_new: bool = False
) -> AsyncIterator[Workspace]:
    """Open the place for the objects of one change; there is nothing at all in it for a new repository."""
    folder = cache.path_of(database, repo_id)
    work = Workspace(database, repo_id, folder)
    if not has_shared_store(database.hub.settings):
        yield work
        return
    await cache.hold(folder)
    work.packs = NewPacks(is_listed=is_new or await cache.is_listed(database, repo_id))
    if work.packs.is_listed:
        name = f"{repo_id}-{new_object_id()}{WORKSPACE_SUFFIX}"
        work.folder = folder.parent / name
        if not is_new:
            await cache.open_folder(database, repo_id)
            await asyncio.to_thread(bare_repos.create_workspace, work.folder, of=folder)
    try:
        yield work
    finally:
        await asyncio.shield(asyncio.create_task(work.close()))


def upload_packs(objects: ObjectStore, repo_id: str, folder: Path) -> tuple[NewPack, ...]:
    """Put the packs of a folder into the store under names that nothing had before; mark them so.

    Loose objects become a pack first. Blocks.
    """
    packs = folder / "objects" / "pack"
    _pack_loose_objects(folder)
    new = []
    for index in sorted(packs.glob("pack-*.idx")):
        name = f"{index.stem}-{new_object_id()[-_NAME_DIGITS:]}"
        new.append(_upload_pack(objects, repo_id, name, index))
        # The new name does not match the pattern above.
        for suffix in (".pack", ".idx"):
            index.with_suffix(suffix).rename(packs / f"{UPLOADED}{name}{suffix}")
    return tuple(new)


def _upload_pack(objects: ObjectStore, repo_id: str, name: str, index: Path) -> NewPack:
    pack = index.with_suffix(".pack")
    size = pack.stat().st_size
    with index.open("rb") as file:
        file.seek(_FAN_OUT)
        count = struct.unpack(">I", file.read(4))[0]
    if size < SMALLEST_STORED:
        data = pack.read_bytes() + index.read_bytes()
        return NewPack(name=name, size=size, objects=count, data=data)
    with ThreadPoolExecutor(2) as threads:
        puts = [
            threads.submit(_put, objects, pack_key(repo_id, name, path.suffix), path)
            for path in (pack, index)
        ]
        for each in puts:
            each.result()
    return NewPack(name=name, size=size, objects=count)


def _put(objects: ObjectStore, key: ObjectKey, path: Path) -> None:
    if path.stat().st_size <= _LARGEST_IN_MEMORY:
        objects.put_bytes(key, path.read_bytes())
        return
    with objects.new_spool(hashed=False) as spool, path.open("rb") as file:
        while data := file.read(_PIECE_BYTES):
            spool.write(data)
        objects.put(key, spool)


def _pack_loose_objects(folder: Path) -> None:
    """Put the loose objects of a workspace into a pack: libgit2 writes the few of a merge like that."""
    loose = list((folder / "objects").glob("[0-9a-f][0-9a-f]/*"))
    if not loose:
        return
    writer = PackWriter(folder)
    for path in loose:
        header, _, data = zlib.decompress(path.read_bytes()).partition(b"\0")
        kind = cast("ObjectKind", header.partition(b" ")[0].decode())
        writer.add(kind, path.parent.name + path.name, data)
    writer.finish()
    for path in loose:
        path.unlink()
