"""Object stores: where bytes lie that never change, most of them under the digest of their content.

Everything here blocks on the disk or the network; call it from a thread where an object can be
large. A folder is the first such store; `storage.s3_store` has the other.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.ids import new_object_id
from hublet.core.startup import CannotStart, check_writable
from hublet.storage.spools import Spool

if TYPE_CHECKING:
    from hublet.storage.s3_multipart import MultipartUploads

_PIECE_BYTES = 1 << 18
# Objects that are named by a digest. They are two folders deep, each named by two characters of it.
DIGEST_KINDS = frozenset({"blobs", "xorbs", "parts"})
_FOLDER_PATTERN = "[0-9a-f][0-9a-f]"
# Before it is all that there is.
NEVER = datetime.max.replace(tzinfo=UTC)
# How the name of an object ends that is being removed.
_LEAVING = ".leaving"


class ObjectKey(NamedTuple):
    # `blobs`, `xorbs` and `parts` are named by a digest; `packs`, `logs`, `images` and `backups` by a path.
    kind: str
    name: str


def blob_key(sha256: str) -> ObjectKey:
    return ObjectKey("blobs", sha256)


def xorb_key(name: str) -> ObjectKey:
    """Return the key of a stored xorb: its name says of which chunks it is, and in which form."""
    return ObjectKey("xorbs", name)


def part_key(name: str) -> ObjectKey:
    """Return the key of a part of an upload that is not complete yet; its name is its own."""
    return ObjectKey("parts", hashlib.sha256(name.encode()).hexdigest())


def layer_part_key(upload_id: str, *, position: int, sha256: str) -> ObjectKey:
    """Return the key of a part of a blob that is pushed to the registry."""
    return part_key(f"registry {upload_id} {position} {sha256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    key: ObjectKey
    size: int
    modified_at: datetime


class ObjectStore(Protocol):
    """Bytes by key. An object never changes: who puts it again puts the same content."""

    # Whether `delete` is safe beside a `put` of the same object; if not, use `storage.removals`.
    can_put_aside: bool

    def new_spool(self, *, size: int | None = None, hashed: bool = True) -> Spool:
        """Return a temporary file for bytes that are to be put."""
        ...

    def put(self, key: ObjectKey, spool: Spool, *, durable: bool = True) -> None:
        """Store the bytes of a spool; when this returns they survive a power cut, if they must.

        An object that is there already becomes new, so that pruning leaves it alone.
        """
        ...

    def pieces(self, key: ObjectKey, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from start to before end; raise FileNotFoundError without the object."""
        ...

    def put_bytes(self, key: ObjectKey, data: bytes) -> None:
        """Store some bytes; only for what is known to be small."""
        ...

    def copy(self, source: ObjectKey, target: ObjectKey, *, size: int) -> None:
        """Put the bytes of an object once more, under another key."""
        with self.new_spool(hashed=False) as spool:
            spool.write_all(self.pieces(source, 0, size))
            self.put(target, spool)

    def multipart_uploads(self) -> "MultipartUploads | None":
        """Return how clients can send objects to the store themselves, if they can."""
        return None

    def read(self, key: ObjectKey) -> bytes:
        """Return all of an object that is known to be small; raise FileNotFoundError without it."""
        ...

    def stat(self, key: ObjectKey) -> StoredObject | None: ...

    def list(self, kind: str, prefix: str = "") -> Iterator[StoredObject]:
        """Yield the objects of a kind, in no order; with a prefix `a/b/` those of such names."""
        ...

    def delete(self, keys: Iterable[ObjectKey], *, before: datetime) -> None:
        """Remove objects, except those that were put since then; what is gone is fine."""
        ...

    def remove_interrupted(
        self, *, before: datetime, kept: AbstractSet[ObjectKey] = frozenset()
    ) -> int:
        """Remove what uploads left that were not continued since then; return how many bytes.

        An upload may go on for longer than that: its parts are kept.
        """
        ...

    def probe(self) -> timedelta | None:
        """Put, read and delete an object; return by how much the clock of the store is ahead.

        Raises CannotStart with a sentence that says what is wrong.
        """
        ...

    def local_path(self, key: ObjectKey) -> Path | None:
        """Return where the object lies on this machine, if it does: the kernel can send it."""
        ...

    def presigned_url(
        self,
        key: ObjectKey,
        *,
        life: timedelta,
        media_type: str | None = None,
        disposition: str | None = None,
    ) -> str | None:
        """Return an address at which everybody can read the object for a while, if there is one.

        The response there has these headers, where the store can sign them. It is a credential.
        """
        ...


class LocalStore(ObjectStore):
    """A folder of one machine, or of a file system that several share, with one for each kind."""

    can_put_aside = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.incoming = folder / "blobs" / "incoming"

    def new_spool(self, *, size: int | None = None, hashed: bool = True) -> Spool:
        return Spool(self.incoming, size=size, hashed=hashed)

    def put(self, key: ObjectKey, spool: Spool, *, durable: bool = True) -> None:
        if durable:
            spool.sync()
        target = self.local_path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Replacing bytes by the same bytes does not disturb readers, and makes the file new.
        spool.move_to(target)
        if durable:
            _sync_folder(target.parent)

    def pieces(self, key: ObjectKey, start: int, end: int) -> Iterator[bytes]:
        with self.local_path(key).open("rb") as file:
            file.seek(start)
            while start < end:
                piece = file.read(min(_PIECE_BYTES, end - start))
                if not piece:
                    raise EOFError(f"{key.name} is shorter than it was said to be.")
                start += len(piece)
                yield piece

    def put_bytes(self, key: ObjectKey, data: bytes) -> None:
        with self.new_spool(hashed=False) as spool:
            spool.write(data)
            self.put(key, spool)

    def copy(self, source: ObjectKey, target: ObjectKey, *, size: int) -> None:
        """Give the file another name where the file system can: objects never change."""
        path, new_path = self.local_path(source), self.local_path(target)
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                raise EOFError(f"{source.name} is shorter than it was said to be.")
            # Whoever put it may not have asked for that.
            os.fsync(file.fileno())
        self.incoming.mkdir(parents=True, exist_ok=True)
        link = self.incoming / new_object_id()
        try:
            link.hardlink_to(path)
        except FileNotFoundError:
            raise
        except OSError:
            super().copy(source, target, size=size)
            return
        try:
            # It is as new as any object that was just put.
            os.utime(link)
            new_path.parent.mkdir(parents=True, exist_ok=True)
            link.replace(new_path)
        finally:
            # Two names of one file are not replaced by each other.
            link.unlink(missing_ok=True)
        _sync_folder(new_path.parent)

    def read(self, key: ObjectKey) -> bytes:
        return self.local_path(key).read_bytes()

    def stat(self, key: ObjectKey) -> StoredObject | None:
        return _stored_object(key, self.local_path(key))

    def list(self, kind: str, prefix: str = "") -> Iterator[StoredObject]:
        if kind not in DIGEST_KINDS:
            yield from self._list_named(kind, prefix)
            return
        for folder in sorted((self.folder / kind).glob(f"{_FOLDER_PATTERN}/{_FOLDER_PATTERN}")):
            for path in _children(folder):
                found = _stored_object(ObjectKey(kind, path.name), path)
                if found is not None and path.name.startswith(prefix):
                    yield found

    def _list_named(self, kind: str, prefix: str) -> Iterator[StoredObject]:
        root = self.folder / kind
        for folder, _, names in os.walk(root / prefix.rpartition("/")[0]):
            for path in (Path(folder, name) for name in names):
                name = path.relative_to(root).as_posix()
                found = _stored_object(ObjectKey(kind, name), path)
                if found is not None and name.startswith(prefix):
                    yield found

    def delete(self, keys: Iterable[ObjectKey], *, before: datetime) -> None:
        self.incoming.mkdir(parents=True, exist_ok=True)
        for key in keys:
            self._delete(key, before)

    def _delete(self, key: ObjectKey, before: datetime) -> None:
        path = self.local_path(key)
        found = _stored_object(key, path)
        if found is None or found.modified_at >= before:
            return
        if key.kind not in DIGEST_KINDS:
            # Such a name is given once: nobody puts the object again.
            path.unlink(missing_ok=True)
            with suppress(OSError):
                path.parent.rmdir()
            return
        # The name is this call's own, and tells what it was if the process dies here.
        aside = self.incoming / f"{key.kind}.{key.name}.{new_object_id()}{_LEAVING}"
        try:
            path.rename(aside)
        except FileNotFoundError:
            return
        self._remove_or_return(aside, before)

    def _remove_or_return(self, aside: Path, before: datetime) -> int:
        """Remove an object that was put aside, unless it is new; return its size if it went.

        The same bytes may have been uploaded just before they were put aside: a check before the
        rename alone would lose them.
        """
        kind, digest, *_ = aside.name.split(".")
        key = ObjectKey(kind, digest)
        found = _stored_object(key, aside)
        is_new = found is not None and found.modified_at >= before
        if is_new:
            with suppress(FileExistsError, FileNotFoundError):
                self.local_path(key).hardlink_to(aside)
        aside.unlink(missing_ok=True)
        return 0 if found is None or is_new else found.size

    def remove_interrupted(
        self, *, before: datetime, kept: AbstractSet[ObjectKey] = frozenset()
    ) -> int:
        removed = 0
        for path in _children(self.incoming):
            if path.name.endswith(_LEAVING):
                removed += self._remove_or_return(path, before)
            elif _is_older(path, before):
                removed += path.stat().st_size
                path.unlink(missing_ok=True)
        parts = old_parts(self, before, kept)
        self.delete([each.key for each in parts], before=before)
        return removed + sum(each.size for each in parts)

    def probe(self) -> timedelta | None:
        check_writable(self.folder)
        return None

    def local_path(self, key: ObjectKey) -> Path:
        if key.kind in DIGEST_KINDS:
            return self.folder / key.kind / key.name[:2] / key.name[2:4] / key.name
        return self.folder / key.kind / key.name

    def presigned_url(
        self,
        key: ObjectKey,  # noqa: ARG002 - as the interface says
        *,
        life: timedelta,  # noqa: ARG002 - as above
        media_type: str | None = None,  # noqa: ARG002 - as above
        disposition: str | None = None,  # noqa: ARG002 - as above
    ) -> str | None:
        return None


def old_parts(
    store: ObjectStore, before: datetime, kept: AbstractSet[ObjectKey]
) -> list[StoredObject]:
    """Return the parts of uploads that were put before then, and are not to be kept."""
    found = store.list("parts")
    return [each for each in found if each.modified_at < before and each.key not in kept]


def _stored_object(key: ObjectKey, path: Path) -> StoredObject | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    modified_at = datetime.fromtimestamp(status.st_mtime, UTC)
    return StoredObject(key=key, size=status.st_size, modified_at=modified_at)


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_older(path: Path, moment: datetime) -> bool:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) < moment
    except FileNotFoundError:
        # It is gone already.
        return False


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def has_shared_store(settings: Settings) -> bool:
    """Tell whether content lies where every node can reach it, not in the folder of this one."""
    return settings.storage.url is not None


def open_store(settings: Settings) -> ObjectStore:
    """Return the store of a hub with these settings: the same one for the same settings."""
    url, previous_url = settings.storage.url, settings.storage.previous_url
    return _open_stores(url, previous_url, settings.database.data_dir)


@lru_cache(maxsize=8)
def _open_stores(url: str | None, previous_url: str | None, data_dir: Path) -> ObjectStore:
    store = open_store_at(url, data_dir)
    if previous_url is None or previous_url == url:
        return store
    # Only a hub whose content moves needs it.
    from hublet.storage.moving_store import MovingStore  # noqa: PLC0415 - as above

    return MovingStore(store, open_store_at(previous_url, data_dir))


@lru_cache(maxsize=8)
def open_store_at(url: str | None, data_dir: Path) -> ObjectStore:
    """Return the store of an address; without one, that of the data folder."""
    if url is None:
        return LocalStore(data_dir)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(Path(unquote(parts.path)))
    try:
        from hublet.storage.s3_store import S3Store  # noqa: PLC0415 - its library is an extra
    except ModuleNotFoundError:
        raise CannotStart(
            "storage.url names a bucket, and what reaches it is not installed: run "
            "pip install 'hublet[s3]', or unset storage.url."
        ) from None
    return S3Store(url, data_dir / "blobs" / "incoming")


def probe_store(settings: Settings) -> timedelta | None:
    """Try the shared store, if there is one; return by how much its clock is ahead, if it has one.

    Raises CannotStart with a sentence. It blocks for some seconds when nobody answers.
    """
    return open_store(settings).probe() if has_shared_store(settings) else None
