"""Scrubber: re-reads objects at rest, reports what is damaged, and heals it from another copy.

A blob that is both whole and cut has two copies. When its whole object is damaged, it is read from its
segments. When a xorb is damaged, another form of the same chunks takes its place; without one, the
blobs in it that are whole are read from there and cut again later, and those that another repository
packed otherwise are read from that layout. A footer is written anew from the chunks. No upload may use a damaged xorb: the clients verify
nothing, and a hash over wrong bytes would look right. An object that is only missing may be on a disk
that is not mounted, so nothing else is changed for it.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from hublet.core import clock
from hublet.core.database import Connection, Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import Unavailable
from hublet.core.logs import get_logger
from hublet.core.queue import add_daily
from hublet.repos import scrub_store, usage
from hublet.repos.scrub_store import ObjectAtRest
from hublet.storage import contents, store
from hublet.storage.errors import InvalidXorb
from hublet.storage.object_store import ObjectKey, ObjectStore, blob_key, open_store, xorb_key
from hublet.storage.records import Content, hash_of
from hublet.storage.spools import Spool
from hublet.storage.verification import verify_stored_xorb
from hublet.storage.workers import processes
from hublet.storage.xet_hashes import from_text
from hublet.storage.xorb_objects import replace_xorb
from hublet.storage.xorbs import XorbLayout

SCRUB = "storage.scrub"
EVERY = timedelta(days=1)
# What was read within this time is not read again.
CHECK_AGE = timedelta(days=30)
_BATCH = 100
_SOUND, _HEALED, _DAMAGED, _MISSING = "sound", "healed", "damaged", "missing"

log = get_logger("storage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """What was checked, in objects and bytes, and how many objects were found wrong."""

    objects: int = 0
    bytes: int = 0
    healed: int = 0
    damaged: int = 0


async def schedule(conn: Connection, *, delay: timedelta = timedelta()) -> None:
    await add_daily(conn, SCRUB, delay=delay)


async def scrub_daily(database: Database) -> None:
    """Check the objects that were not checked for longest, as many bytes as the settings say."""
    async with database.transaction() as conn:
        await schedule(conn, delay=EVERY)
    limit = database.hub.settings.storage.scrub_bytes
    if limit:
        done = await scrub(
            database, unchecked_since=clock.now() - CHECK_AGE, most_bytes=limit, gentle=True
        )
        async with database.transaction() as conn:
            await usage.remember(
                conn,
                usage.Upkeep.scrubbing,
                objects=done.objects,
                bytes=done.bytes,
                healed=done.healed,
                damaged=done.damaged,
            )


async def scrub(
    database: Database,
    *,
    unchecked_since: datetime,
    most_bytes: int | None = None,
    gentle: bool = False,
    on_progress: Callable[[Scrubbed], None] = lambda _done: None,
) -> Scrubbed:
    """Check what is known to be damaged, and then objects that were not checked since then.

    A gentle one rests after each object for as long as reading took.
    """
    done = Scrubbed()
    scrubber = _Scrubber(database)
    async for each in _objects(database, clock.to_micros(unchecked_since)):
        began = clock.monotonic()
        done = _add(done, each, await scrubber.check(each))
        on_progress(done)
        if most_bytes is not None and done.bytes >= most_bytes:
            break
        if gentle:
            await asyncio.sleep(clock.monotonic() - began)
    return done


async def _objects(database: Database, before: int) -> AsyncIterator[ObjectAtRest]:
    async with database.read() as conn:
        damaged = await scrub_store.list_damaged_at_rest(conn)
    for each in damaged:
        yield each
    seen: set[ObjectAtRest] = set()
    while True:
        async with database.read() as conn:
            listed = await scrub_store.list_unchecked(conn, before=before, limit=_BATCH)
        new = [each for each in listed if each not in seen]
        if not new:
            return
        for each in new:
            yield each
        # What could not be read stays unchecked, and would be listed for ever.
        seen.update(new)


def _add(done: Scrubbed, each: ObjectAtRest, outcome: str) -> Scrubbed:
    return Scrubbed(
        objects=done.objects + 1,
        bytes=done.bytes + each.size,
        healed=done.healed + (outcome == _HEALED),
        damaged=done.damaged + (outcome == _DAMAGED),
    )


class _Scrubber:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._objects = open_store(database.hub.settings)

    async def check(self, each: ObjectAtRest) -> str:
        """Read an object whole; return whether it is sound, was healed, or is damaged."""
        try:
            problem = await self._find_problem(each)
        except (OSError, Unavailable):
            # The disk or the bucket may be away for a moment: that is no damage.
            log.exception("an object could not be read", kind=each.kind, digest=each.digest)
            return _SOUND
        async with self._database.transaction() as conn:
            await scrub_store.set_checked(conn, each)
            if problem is None or not await scrub_store.is_needed(conn, each):
                await scrub_store.remove_damaged(conn, each.kind, each.digest)
                return _SOUND
        heal = self._heal_blob if each.kind == "blobs" else self._heal_xorb
        is_healed = await heal(each.digest, problem)
        await self._report(each, problem, is_healed=is_healed)
        return _HEALED if is_healed else _DAMAGED

    async def _find_problem(self, each: ObjectAtRest) -> str | None:
        try:
            if each.kind == "blobs":
                is_sound = await asyncio.to_thread(_is_whole, self._objects, each)
            else:
                _, is_sound = await self._verify_xorb(each.digest)
        except FileNotFoundError:
            return _MISSING
        except (InvalidXorb, EOFError):
            return _DAMAGED
        return None if is_sound else _DAMAGED

    async def _verify_xorb(self, name: str) -> tuple[XorbLayout, bool]:
        async with _local_file(self._objects, xorb_key(name)) as path:
            return await processes.run(verify_stored_xorb, path, from_text(hash_of(name)))

    async def _report(self, each: ObjectAtRest, problem: str, *, is_healed: bool) -> None:
        async with self._database.transaction() as conn:
            names = await scrub_store.names_of_repos(conn, each.kind, each.digest)
            if is_healed:
                await scrub_store.remove_damaged(conn, each.kind, each.digest)
            else:
                await scrub_store.add_damaged(conn, each, problem)
        write = log.warning if is_healed else log.error
        outcome = "an object was healed" if is_healed else "an object is damaged"
        write(outcome, kind=each.kind, digest=each.digest, problem=problem, repos=names)

    async def _heal_blob(self, sha256: str, _problem: str) -> bool:
        """Read a blob from its segments from now on, if those of a layout are sound."""
        if await self._find_sound_layout(sha256, except_for=()) is None:
            return False
        async with self._database.transaction() as conn:
            await scrub_store.set_cut(conn, sha256)
        return True

    async def _find_sound_layout(self, sha256: str, *, except_for: Sequence[str]) -> str | None:
        async with self._database.read() as conn:
            layouts = await store.list_layouts(conn, sha256)
        for layout in layouts:
            if layout not in except_for and await self._is_sound(sha256, layout):
                return layout
        return None

    async def _is_sound(self, sha256: str, layout: str) -> bool:
        async with self._database.read() as conn:
            found = await store.find_contents(conn, [sha256], layouts={sha256: layout})
        content = found.get(sha256)
        return content is not None and await asyncio.to_thread(_is_cut, self._objects, content)

    async def _heal_xorb(self, name: str, problem: str) -> bool:
        if problem == _DAMAGED and await self._heal_footer(name):
            return True
        if await self._heal_from_form(name):
            return True
        async with self._database.read() as conn:
            layouts = await scrub_store.list_layouts_in_xorb(conn, name)
        healed = [
            await self._heal_blob_in_xorb(sha256, damaged) for sha256, damaged in layouts.items()
        ]
        if problem == _DAMAGED or all(healed):
            async with self._database.transaction() as conn:
                await scrub_store.unlink_xorb(conn, name)
        return all(healed)

    async def _heal_from_form(self, name: str) -> bool:
        """Let another form of the same chunks take the place of a xorb, if one is sound."""
        async with self._database.read() as conn:
            forms = await store.find_other_forms(conn, name)
        for form in forms:
            try:
                layout, is_sound = await self._verify_xorb(form.name)
            except (InvalidXorb, OSError):
                continue
            if is_sound:
                async with self._database.transaction() as conn:
                    await scrub_store.replace_xorb(conn, name, form, layout)
                return True
        return False

    async def _heal_blob_in_xorb(self, sha256: str, layouts: Sequence[str]) -> bool:
        """Read a blob from its whole object, or from another layout than these that are damaged."""
        if await asyncio.to_thread(_put_whole_again, self._objects, sha256):
            async with self._database.transaction() as conn:
                await scrub_store.set_uncut(conn, [sha256])
                await store.check_present(conn, [blob_key(sha256)])
            return True
        other = await self._find_sound_layout(sha256, except_for=layouts)
        if other is None:
            return False
        async with self._database.transaction() as conn:
            await scrub_store.replace_layouts(conn, layouts, other)
        return True

    async def _heal_footer(self, name: str) -> bool:
        """Write a xorb anew whose chunks are sound."""
        try:
            layout, _ = await self._verify_xorb(name)
        except (InvalidXorb, OSError):
            return False
        await asyncio.to_thread(_put_xorb_again, self._objects, name, layout)
        return True


@asynccontextmanager
async def _local_file(objects: ObjectStore, key: ObjectKey) -> AsyncIterator[Path]:
    """Give an object as a file of this machine, copied where it is none."""
    path = objects.local_path(key)
    if path is not None:
        yield path
        return
    spool = await asyncio.to_thread(_copy, objects, key)
    try:
        yield spool.path
    finally:
        await asyncio.to_thread(spool.close)


def _copy(objects: ObjectStore, key: ObjectKey, *, size: int | None = None) -> Spool:
    """Copy an object, or its first bytes, to a new spool."""
    found = objects.stat(key)
    if found is None:
        raise FileNotFoundError(key.name)
    spool = objects.new_spool(hashed=key.kind == "blobs")
    try:
        for piece in objects.pieces(key, 0, found.size if size is None else size):
            spool.write(piece)
        spool.flush()
    except BaseException:
        spool.close()
        raise
    return spool


def _is_whole(objects: ObjectStore, each: ObjectAtRest) -> bool:
    found = objects.stat(blob_key(each.digest))
    if found is None:
        raise FileNotFoundError(each.digest)
    content = Content(sha256=each.digest, size=each.size)
    return found.size == each.size and _digest(objects, content) == each.digest


def _is_cut(objects: ObjectStore, content: Content) -> bool:
    try:
        return _digest(objects, replace(content, is_whole=False)) == content.sha256
    except (InvalidXorb, OSError, EOFError):
        return False


def _digest(objects: ObjectStore, content: Content) -> str:
    digest = hashlib.sha256()
    for piece in contents.pieces(objects, content, 0, content.size):
        digest.update(piece)
    return digest.hexdigest()


def _put_whole_again(objects: ObjectStore, sha256: str) -> bool:
    """Put the whole object of a blob again, if there is one and it is sound: pruning spares it."""
    try:
        with _copy(objects, blob_key(sha256)) as spool:
            if spool.sha256 == sha256:
                objects.put(blob_key(sha256), spool)
                return True
    except (OSError, EOFError):
        pass
    return False


def _put_xorb_again(objects: ObjectStore, name: str, layout: XorbLayout) -> None:
    with _copy(objects, xorb_key(name), size=layout.stored_size) as spool:
        replace_xorb(objects, name, spool, layout)
