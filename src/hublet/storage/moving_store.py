"""Store of a hub whose content moves: it writes to one store and also reads another."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hublet.storage.object_store import (
    DIGEST_KINDS,
    NEVER,
    ObjectKey,
    ObjectStore,
    StoredObject,
)
from hublet.storage.spools import Spool

if TYPE_CHECKING:
    from hublet.storage.s3_multipart import MultipartUploads


class MovingStore(ObjectStore):
    """Two stores as one: what is put goes to the first, what that has not got comes from the second.

    Objects are only ever added to the first, or deleted in both: a reader that does not find one in
    the first finds it in the second, or it is gone.
    """

    def __init__(self, store: ObjectStore, previous: ObjectStore) -> None:
        self.store = store
        self.previous = previous
        self.can_put_aside = store.can_put_aside and previous.can_put_aside

    def new_spool(self, *, size: int | None = None, hashed: bool = True) -> Spool:
        return self.store.new_spool(size=size, hashed=hashed)

    def put(self, key: ObjectKey, spool: Spool, *, durable: bool = True) -> None:
        self.store.put(key, spool, durable=durable)

    def put_bytes(self, key: ObjectKey, data: bytes) -> None:
        self.store.put_bytes(key, data)

    def copy(self, source: ObjectKey, target: ObjectKey, *, size: int) -> None:
        if self.store.stat(source) is not None:
            self.store.copy(source, target, size=size)
        else:
            super().copy(source, target, size=size)

    def multipart_uploads(self) -> "MultipartUploads | None":
        return self.store.multipart_uploads()

    def pieces(self, key: ObjectKey, start: int, end: int) -> Iterator[bytes]:
        pieces = self.store.pieces(key, start, end)
        try:
            first = next(pieces, b"")
        except FileNotFoundError:
            pieces = self.previous.pieces(key, start, end)
            first = next(pieces, b"")
        if first:
            yield first
        yield from pieces

    def read(self, key: ObjectKey) -> bytes:
        try:
            return self.store.read(key)
        except FileNotFoundError:
            return self.previous.read(key)

    def stat(self, key: ObjectKey) -> StoredObject | None:
        return self.store.stat(key) or self.previous.stat(key)

    def list(self, kind: str, prefix: str = "") -> Iterator[StoredObject]:
        seen = set[str]()
        for found in self.store.list(kind, prefix):
            seen.add(found.key.name)
            yield found
        yield from (
            found for found in self.previous.list(kind, prefix) if found.key.name not in seen
        )

    def delete(self, keys: Iterable[ObjectKey], *, before: datetime) -> None:
        """Remove objects from both.

        A digest that was put again since then stays in the first; the second may lose it, because it
        was not put there. Other names are given once: their copy is as old as they are.
        """
        gone = list(keys)
        copied = {key for key in gone if key.kind not in DIGEST_KINDS and self._had(key, before)}
        self.previous.delete(gone, before=before)
        self.store.delete([key for key in gone if key not in copied], before=before)
        self.store.delete(copied, before=NEVER)

    def _had(self, key: ObjectKey, before: datetime) -> bool:
        found = self.previous.stat(key)
        return found is not None and found.modified_at < before

    def remove_interrupted(
        self, *, before: datetime, kept: AbstractSet[ObjectKey] = frozenset()
    ) -> int:
        both = (self.store, self.previous)
        return sum(each.remove_interrupted(before=before, kept=kept) for each in both)

    def local_path(self, key: ObjectKey) -> Path | None:
        # Where neither has it, the first says so to who opens it.
        places = [store.local_path(key) for store in (self.store, self.previous)]
        return next((path for path in places if path is not None and path.exists()), places[0])

    def probe(self) -> timedelta | None:
        self.previous.probe()
        return self.store.probe()

    def presigned_url(
        self,
        key: ObjectKey,
        *,
        life: timedelta,
        media_type: str | None = None,
        disposition: str | None = None,
    ) -> str | None:
        holder = self.store if self.store.stat(key) is not None else self.previous
        return holder.presigned_url(key, life=life, media_type=media_type, disposition=disposition)
