"""Compaction: many packs of a repository become one beside pushes, and what nothing lists is removed.

Everything that refs reach goes into one pack, everything else into another. Unreachable objects are
dropped when they were found so two weeks ago as well: then they lie in such a second pack of that age,
and in no other. The list changes in one transaction, for the refs that the packs were checked with.
"""

import asyncio
import os
import struct
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from datetime import timedelta
from itertools import islice
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.logs import get_logger
from hublet.repos.errors import GitFailed
from hublet.repos.git import bare_repos, process
from hublet.repos.git.packs import WORKSPACE_SUFFIX
from hublet.repos.packs import cache, store
from hublet.repos.packs.store import ListedPack, PackKind
from hublet.repos.packs.workspaces import upload_packs
from hublet.repos.records import NewPack
from hublet.storage.object_store import StoredObject, open_store

log = get_logger("packs")

MOST_PACKS = 50
# Or when pushes brought this part of what is packed, and not just a little.
MOST_PUSHED_PART = 10
LEAST_PUSHED_BYTES = 8 << 20
UNREACHABLE_KEPT = timedelta(weeks=2)
# An upload is listed within hours, or never.
ORPHAN_AGE = timedelta(days=2)
# How often the new packs are checked again because refs moved meanwhile.
ATTEMPTS = 5
_BATCH = 500
_OID_BYTES = 20
_HEADER_BYTES = 8
_FAN_OUT_BYTES = 256 * 4


class _ListChanged(Exception):
    """The transaction is given up: refs moved, or other packs took the place of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackOutput:
    """Folders for new packs, one for each kind, and what was uploaded from them."""

    folders: Mapping[PackKind, Path]
    packs: dict[PackKind, list[NewPack]] = field(default_factory=lambda: defaultdict(list))

    def written(self) -> list[Path]:
        """Return the indexes of the packs, uploaded or not."""
        return [
            path
            for folder in self.folders.values()
            for path in (folder / "objects" / "pack").glob("*.idx")
        ]

    async def upload(self, database: Database, repo_id: str) -> None:
        objects = open_store(database.hub.settings)
        for kind, folder in self.folders.items():
            self.packs[kind] += await asyncio.to_thread(upload_packs, objects, repo_id, folder)

    async def adopt(self, database: Database, repo_id: str) -> None:
        """Move the packs, which are listed now, to the cache of this node."""
        for kind, folder in self.folders.items():
            names = [pack.name for pack in self.packs[kind]]
            await cache.adopt(database, repo_id, folder, names)


@asynccontextmanager
async def open_output(folder: Path) -> AsyncIterator[PackOutput]:
    """Make folders for new packs beside a bare repository, whose objects git can read there."""
    folders = {kind: _beside(folder) for kind in (PackKind.packed, PackKind.cruft)}
    try:
        for each in folders.values():
            await asyncio.to_thread(bare_repos.create_workspace, each, of=folder)
        yield PackOutput(folders=folders)
    finally:
        for each in folders.values():
            await asyncio.shield(asyncio.to_thread(bare_repos.remove, each))


def _beside(folder: Path) -> Path:
    return folder.parent / f"{folder.stem}-{new_object_id()}{WORKSPACE_SUFFIX}"


async def write_pack(folder: Path, lines: Iterable[str], *options: str) -> None:
    """Write a pack of the revisions or objects that these lines name to its own folder of packs."""
    target = folder / "objects" / "pack" / "pack"
    with tempfile.TemporaryFile() as names:
        names.write("".join(f"{line}\n" for line in lines).encode())
        names.seek(0)
        command = ("pack-objects", "-q", "--delta-base-offset", *options, str(target))
        async with process.start_git(folder, "-c", "pack.threads=1", *command, stdin=names) as git:
            await git.stdout.read()
            await git.end()


def object_names(index: Path) -> set[bytes]:
    """Return the ids of the objects in a pack, given its index."""
    with index.open("rb") as file:
        fan_out = file.read(_HEADER_BYTES + _FAN_OUT_BYTES)
        count = struct.unpack(">I", fan_out[-4:])[0]
        names = file.read(count * _OID_BYTES)
    return {names[at : at + _OID_BYTES] for at in range(0, len(names), _OID_BYTES)}


def needs_repack(listed: Sequence[ListedPack]) -> bool:
    pushed = [pack.size for pack in listed if pack.kind is PackKind.push]
    packed = sum(pack.size for pack in listed if pack.kind is PackKind.packed)
    return len(listed) > MOST_PACKS or (
        len(pushed) > 1
        and sum(pushed) >= LEAST_PUSHED_BYTES
        and sum(pushed) * MOST_PUSHED_PART > packed
    )


async def repack_if_needed(database: Database, repo_id: str) -> bool:
    """Repack a repository with many packs; return whether it was done."""
    async with database.read() as conn:
        listed = await store.list_of(conn, repo_id)
    return needs_repack(listed) and await repack(database, repo_id)


async def repack(database: Database, repo_id: str) -> bool:
    """Let one pack take the place of all; False when the list changed too much meanwhile.

    Pushes go on beside it, on every node.
    """
    async with database.read() as conn:
        version, refs = await store.list_refs(conn, repo_id)
        listed = await store.list_of(conn, repo_id)
    folder = await cache.open_folder(database, repo_id)
    if not refs or not _has_all(folder, listed):
        # It is being deleted, or another repack was first.
        return False
    async with _exact_copy(folder, listed, refs) as source, open_output(source) as output:
        await write_pack(output.folders[PackKind.packed], refs.values(), "--revs")
        left = await asyncio.to_thread(_unreachable, source, listed, output.written())
        if left:
            await write_pack(output.folders[PackKind.cruft], left)
        await output.upload(database, repo_id)
        old = [pack.name for pack in listed]
        for _ in range(ATTEMPTS):
            if await _replace(database, repo_id, old, output, version):
                await output.adopt(database, repo_id)
                return True
            async with database.read() as conn:
                version, current = await store.list_refs(conn, repo_id)
            if not await _reaches_all(database, repo_id, old, output, refs, current):
                break
    log.info("a repository was not repacked: it changed meanwhile", repo=repo_id)
    return False


def _has_all(folder: Path, listed: Iterable[ListedPack]) -> bool:
    packs = folder / "objects" / "pack"
    return all((packs / f"{pack.name}.idx").exists() for pack in listed)


@asynccontextmanager
async def _exact_copy(
    folder: Path, packs: Iterable[ListedPack], refs: Mapping[str, str]
) -> AsyncIterator[Path]:
    """Make a bare repository with just these packs and refs."""
    copy = _beside(folder)
    indexes = [folder / "objects" / "pack" / f"{pack.name}.idx" for pack in packs]
    try:
        await asyncio.to_thread(_link, copy, indexes, refs)
        yield copy
    finally:
        await asyncio.shield(asyncio.to_thread(bare_repos.remove, copy))


def _link(copy: Path, indexes: Iterable[Path], refs: Mapping[str, str]) -> None:
    bare_repos.create_empty(copy)
    packs = copy / "objects" / "pack"
    packs.mkdir(exist_ok=True)
    for index in indexes:
        for suffix in (".pack", ".idx"):
            os.link(index.with_suffix(suffix), packs / f"{index.stem}{suffix}")
    bare_repos.write_packed_refs(copy, refs, version=0)


def _unreachable(
    source: Path, listed: Iterable[ListedPack], reachable: Iterable[Path]
) -> list[str]:
    """Return the objects that no ref reaches, except those that were seen so long ago."""
    before = clock.micros() - UNREACHABLE_KEPT // timedelta(microseconds=1)
    kept = set[bytes]()
    for pack in listed:
        if pack.kind is not PackKind.cruft or pack.created_at >= before:
            kept |= object_names(source / "objects" / "pack" / f"{pack.name}.idx")
    for index in reachable:
        kept -= object_names(index)
    return [name.hex() for name in sorted(kept)]


async def _replace(
    database: Database, repo_id: str, old: Collection[str], output: PackOutput, refs_version: int
) -> bool:
    try:
        async with database.transaction() as conn:
            if not await store.replace(conn, repo_id, old, output.packs, refs_version=refs_version):
                raise _ListChanged  # noqa: TRY301 - it ends the transaction
    except _ListChanged:
        return False
    return True


async def _reaches_all(
    database: Database,
    repo_id: str,
    old: Collection[str],
    output: PackOutput,
    refs: Mapping[str, str],
    current: Mapping[str, str],
) -> bool:
    """Tell whether the new packs, and those that came since, have all that refs reach now."""
    async with database.read() as conn:
        later = [pack for pack in await store.list_of(conn, repo_id) if pack.name not in old]
    folder = await cache.open_folder(database, repo_id)
    if not _has_all(folder, later):
        return False
    async with _exact_copy(folder, later, refs) as copy:
        for index in output.written():
            for suffix in (".pack", ".idx"):
                os.link(
                    index.with_suffix(suffix), copy / "objects" / "pack" / f"{index.stem}{suffix}"
                )
        moved = sorted(set(current.values()) - set(refs.values()))
        try:
            await process.run_git(
                copy, "rev-list", "--objects", "--quiet", *moved, "--not", "--all"
            )
        except GitFailed:
            return False
    return True


async def sweep(database: Database) -> int:
    """Remove what other packs replaced a day ago, and uploads that were never listed; return the bytes."""
    objects = open_store(database.hub.settings)
    # The store knows the real time, which test mode does not move.
    moment = clock.now() - clock.offset()
    while True:
        async with database.read() as conn:
            removed = await store.list_removed(conn, limit=_BATCH)
        if not removed:
            break
        keys = [cache.pack_key(*each, suffix) for each in removed for suffix in (".pack", ".idx")]
        await asyncio.to_thread(objects.delete, keys, before=moment)
        async with database.transaction() as conn:
            await store.forget_removed(conn, removed)
    freed = 0
    old = (each for each in objects.list("packs") if each.modified_at < moment - ORPHAN_AGE)
    while batch := await asyncio.to_thread(list, islice(old, _BATCH)):
        orphans = await _without_row(database, batch)
        keys = [each.key for each in orphans]
        await asyncio.to_thread(objects.delete, keys, before=moment - ORPHAN_AGE)
        freed += sum(each.size for each in orphans)
    return freed


async def _without_row(database: Database, found: Iterable[StoredObject]) -> list[StoredObject]:
    by_repo = defaultdict[str, list[StoredObject]](list)
    for each in found:
        by_repo[each.key.name.partition("/")[0]].append(each)
    orphans: list[StoredObject] = []
    for repo_id, stored in by_repo.items():
        names = {each.key.name: Path(each.key.name).stem for each in stored}
        async with database.read() as conn:
            known = await store.find_known(conn, repo_id, names.values())
        orphans += [each for each in stored if names[each.key.name] not in known]
    return orphans
