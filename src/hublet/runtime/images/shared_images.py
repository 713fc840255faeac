"""Pull-through cache: what one machine pulled lies in the hub's shared store for the others.

It holds documents and layers by their digests, apart for each scope, and can be emptied at any time.
A hub with a single data folder needs none: the cache of its machine is all that there is.
"""

from datetime import timedelta
from pathlib import Path

from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.logs import get_logger
from hublet.runtime.images import oci
from hublet.runtime.images.pulled_files import PartialFile
from hublet.storage.errors import StoreUnavailable
from hublet.storage.object_store import ObjectKey, has_shared_store, open_store

log = get_logger("jobs")

# A kind of objects that is named by a path.
KIND = "images"
_MAX_AGE = timedelta(days=30)
_PIECE_BYTES = 2**20


class SharedImages:
    """The shared store of a hub; without one, nothing is there and nothing is kept. All blocks."""

    def __init__(self, settings: Settings) -> None:
        self._store = open_store(settings) if has_shared_store(settings) else None

    def read(self, scopes: tuple[str, ...], entry: oci.Descriptor) -> bytes | None:
        """Return a document that was kept for one of these scopes."""
        for scope in scopes if self._store is not None else ():
            try:
                content = self._store.read(_key(scope, entry.digest)) if self._store else b""
            except (FileNotFoundError, StoreUnavailable):
                continue
            if oci.is_document(content, entry.digest):
                return content
        return None

    def fill(self, scopes: tuple[str, ...], layer: oci.Descriptor, partial: PartialFile) -> bool:
        """Copy a layer that was kept for one of these scopes, verified; False: there is none."""
        if self._store is None or layer.size is None:
            return False
        for scope in scopes:
            try:
                found = self._store.stat(_key(scope, layer.digest))
                if found is None or found.size != layer.size:
                    continue
                partial.restart(layer.digest.partition(":")[0])
                for piece in self._store.pieces(found.key, 0, found.size):
                    partial.append(piece)
            except (FileNotFoundError, EOFError, StoreUnavailable):
                continue
            if partial.complete(layer.digest):
                return True
        return False

    def keep(self, scope: str, digest: str, content: Path | bytes) -> None:
        """Keep a document or the file of a layer for the other machines, if that is possible."""
        if self._store is None:
            return
        key = _key(scope, digest)
        try:
            if self._store.stat(key) is not None:
                return
            if isinstance(content, bytes):
                self._store.put_bytes(key, content)
                return
            with self._store.new_spool(hashed=False) as spool, content.open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    spool.write(piece)
                self._store.put(key, spool, durable=False)
        except (OSError, StoreUnavailable) as error:
            log.warning("a pulled layer was not kept in the store", digest=digest, error=str(error))

    def prune(self) -> None:
        """Remove what was put a month ago: who needs it pulls it again."""
        if self._store is None:
            return
        before = now() - _MAX_AGE
        try:
            old = [each.key for each in self._store.list(KIND) if each.modified_at < before]
            self._store.delete(old, before=before)
        except StoreUnavailable as error:
            log.warning("old images were not removed from the store", error=str(error))


def _key(scope: str, digest: str) -> ObjectKey:
    return ObjectKey(KIND, f"{scope}/{digest.replace(':', '/')}")
