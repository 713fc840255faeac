"""Move of content from one store to another while the hub uses both: copies what is not there yet.

Objects never change, so there is nothing to remember: what the target has in the same size is not
copied again, and a copy appears whole or not at all. It blocks: call it in a thread.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Any

from hublet.core import metadata
from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.storage.object_store import (
    DIGEST_KINDS,
    NEVER,
    ObjectKey,
    ObjectStore,
    StoredObject,
)

_MOVE_NAME = "storage.move"
# Packs after all that their commits may name, so that a target which is looked at is never ahead.
KINDS = ("parts", "xorbs", "blobs", "logs", "packs", "backups")
_AT_ONCE = 8
_WINDOW = 256


class _Outcome(Enum):
    copied = "copied"
    present = "present"
    # Deleted while it was copied.
    gone = "gone"
    # Its bytes are not those of its name: it stays where it is.
    damaged = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedContent:
    """How far a move is."""

    copied: int = 0
    copied_bytes: int = 0
    present: int = 0
    damaged: tuple[ObjectKey, ...] = ()

    def with_outcome(self, found: StoredObject, outcome: _Outcome) -> "MovedContent":
        is_copied = outcome is _Outcome.copied
        damaged = (found.key,) if outcome is _Outcome.damaged else ()
        return MovedContent(
            copied=self.copied + is_copied,
            copied_bytes=self.copied_bytes + found.size * is_copied,
            present=self.present + (outcome is _Outcome.present),
            damaged=self.damaged + damaged,
        )


def copy_content(
    source: ObjectStore,
    target: ObjectStore,
    *,
    verify: bool = False,
    dry_run: bool = False,
    on_progress: Callable[[MovedContent], None] = lambda _: None,
) -> MovedContent:
    """Copy every object of a store that another has not; with `verify`, read back what it has.

    A dry run counts what would be copied.
    """
    moved = MovedContent()

    def copy(found: StoredObject) -> _Outcome:
        if _has(target, found):
            is_sound = not verify or _is_same(source, target, found)
            return _Outcome.present if is_sound else _Outcome.damaged
        return _Outcome.copied if dry_run else _copy(source, target, found, verify=verify)

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for window in _windows(source):
            for found, outcome in zip(window, threads.map(copy, window), strict=True):
                moved = moved.with_outcome(found, outcome)
                on_progress(moved)
    return moved


async def remember_end(conn: Connection, source: str) -> None:
    """Remember that everything of a store was copied, for the doctor."""
    await metadata.set_value(conn, _MOVE_NAME, json.dumps({"from": source, "at": micros()}))


async def find_end(conn: Reader, source: str) -> datetime | None:
    """Return when everything of a store was copied last; None: it never was."""
    ended: dict[str, Any] = json.loads(await metadata.find(conn, _MOVE_NAME) or "{}")
    return from_micros(ended["at"]) if ended.get("from") == source else None


def _windows(source: ObjectStore) -> Iterator[list[StoredObject]]:
    for kind in KINDS:
        listed = iter(source.list(kind))
        while window := list(islice(listed, _WINDOW)):
            yield window


def _has(store: ObjectStore, found: StoredObject) -> bool:
    there = store.stat(found.key)
    return there is not None and there.size == found.size


def _copy(
    source: ObjectStore, target: ObjectStore, found: StoredObject, *, verify: bool
) -> _Outcome:
    key = found.key
    with target.new_spool() as spool:
        try:
            spool.write_all(source.pieces(key, 0, found.size))
        except FileNotFoundError:
            return _Outcome.gone
        except EOFError:
            return _Outcome.damaged
        if key.kind == "blobs" and spool.sha256 != key.name:
            return _Outcome.damaged
        digest = spool.sha256
        if source.stat(key) is None:
            return _Outcome.gone
        target.put(key, spool)
    if key.kind not in DIGEST_KINDS and source.stat(key) is None:
        # It was deleted in both before it was put; nobody puts such a name again.
        target.delete([key], before=NEVER)
        return _Outcome.gone
    is_whole = _digest(target, found) == digest if verify else _has(target, found)
    return _Outcome.copied if is_whole else _Outcome.damaged


def _is_same(source: ObjectStore, target: ObjectStore, found: StoredObject) -> bool:
    expected = found.key.name if found.key.kind == "blobs" else None
    try:
        return _digest(target, found) == (expected or _digest(source, found))
    except FileNotFoundError:
        # Deleted meanwhile.
        return True


def _digest(store: ObjectStore, found: StoredObject) -> str:
    digest = hashlib.sha256()
    for piece in store.pieces(found.key, 0, found.size):
        digest.update(piece)
    return digest.hexdigest()
