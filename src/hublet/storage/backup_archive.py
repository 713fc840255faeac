"""Backup archive: a tar stream whose last member, the manifest, has the SHA-256 of all others.

An archive without a manifest is not whole. It lies in a file, or in a bucket as one object.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

from hublet.core.dataclasses import dataclass
from hublet.storage.s3_location import S3Location, find_credentials

MANIFEST = "manifest.jsonl"
_PIECE_BYTES = 1 << 20
_FILE_MODE = 0o600
_GZIP_MAGIC = b"\x1f\x8b"
# Most content is compressed already: more effort would only take longer.
_GZIP_LEVEL = 1


class ArchiveBroken(Exception):
    """The archive is not whole, or not one of ours. The message says what is wrong with it."""


class ArchiveUnreachable(Exception):
    """The archive cannot be read or written where it is said to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMember:
    name: str
    mode: int
    size: int
    is_folder: bool
    # Its bytes, to be read before the next member is.
    data: BinaryIO

    def pieces(self) -> Iterator[bytes]:
        while piece := self.data.read(_PIECE_BYTES):
            yield piece


@contextmanager
def _reading() -> Iterator[None]:
    """Tell what is wrong with an archive, wherever its end comes: also in the middle of a member."""
    try:
        yield
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise
        raise ArchiveBroken(f"it cannot be read to its end ({error})") from error


class _HashedReader(io.RawIOBase):
    """Bytes of a member on their way, and their digest."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with _reading():
            data = self._source.read(size)
        self.sha256.update(data)
        return data


class _PieceReader(io.RawIOBase):
    """A file of pieces that come one after the other."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


class ArchiveWriter:
    """Writes members one after the other; blocks on the disk or the network."""

    def __init__(self, file: BinaryIO) -> None:
        self._tar = tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._lines = tempfile.TemporaryFile()  # noqa: SIM115 - closed by finish
        self.members = 0
        self.bytes = 0

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add_file(name, io.BytesIO(data), size=len(data))

    def add_pieces(self, name: str, pieces: Iterable[bytes], *, size: int) -> None:
        self.add_file(name, cast("BinaryIO", _PieceReader(pieces)), size=size)

    def add_folder(self, name: str, *, mode: int) -> None:
        info = self._info(name, size=0, mode=mode)
        info.type = tarfile.DIRTYPE
        self._add(info, io.BytesIO())

    def add_file(self, name: str, file: BinaryIO, *, size: int, mode: int = _FILE_MODE) -> str:
        """Add so many bytes of a file, and return their SHA-256."""
        return self._add(self._info(name, size=size, mode=mode), file)

    def _info(self, name: str, *, size: int, mode: int) -> tarfile.TarInfo:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, mode
        return info

    def _add(self, info: tarfile.TarInfo, file: BinaryIO) -> str:
        reader = _HashedReader(file)
        self._tar.addfile(info, cast("BinaryIO", reader))
        _forget_members(self._tar)
        digest = reader.sha256.hexdigest()
        line = {"name": info.name, "size": info.size, "sha256": digest}
        self._lines.write(json.dumps(line).encode() + b"\n")
        self.members += 1
        self.bytes += info.size
        return digest

    def finish(self) -> None:
        size = self._lines.tell()
        self._lines.seek(0)
        with self._lines:
            self._tar.addfile(self._info(MANIFEST, size=size, mode=_FILE_MODE), self._lines)
        self._tar.close()


def _forget_members(tar: tarfile.TarFile) -> None:
    """Drop the list that the library keeps of all members: there may be millions."""
    cast("Any", tar).members.clear()


def read_members(file: BinaryIO) -> Iterator[ArchiveMember]:
    """Yield the members in their order; raise ArchiveBroken at the end unless all are as written.

    Nothing of an archive may be used before this has ended well.
    """
    digests = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the generator
    with digests, _reading(), tarfile.open(fileobj=_unpacked(file), mode="r|") as tar:
        for info in tar:
            _forget_members(tar)
            content = tar.extractfile(info) if info.isreg() else io.BytesIO()
            if info.name == MANIFEST:
                _compare(cast("BinaryIO", content), digests)
                return
            yield from _one_member(info, cast("BinaryIO", content), digests)
    raise ArchiveBroken("its end is missing")


def _unpacked(file: BinaryIO) -> BinaryIO:
    buffered = io.BufferedReader(cast("io.RawIOBase", file), _PIECE_BYTES)
    if buffered.peek(2)[:2] == _GZIP_MAGIC:
        return cast("BinaryIO", gzip.GzipFile(fileobj=buffered))
    return buffered


def _one_member(
    info: tarfile.TarInfo, content: BinaryIO, digests: BinaryIO
) -> Iterator[ArchiveMember]:
    path = PurePosixPath(info.name)
    if path.is_absolute() or ".." in path.parts or not (info.isreg() or info.isdir()):
        raise ArchiveBroken(f"it has the member {info.name}, which no backup has")
    reader = _HashedReader(content)
    member = ArchiveMember(
        name=info.name,
        mode=info.mode & 0o777,
        size=info.size,
        is_folder=info.isdir(),
        data=cast("BinaryIO", reader),
    )
    yield member
    for _ in member.pieces():
        pass
    line = {"name": info.name, "size": info.size, "sha256": reader.sha256.hexdigest()}
    digests.write(json.dumps(line).encode() + b"\n")


def _compare(manifest: BinaryIO, digests: BinaryIO) -> None:
    digests.seek(0)
    for expected in manifest:
        if digests.readline() != expected:
            name = json.loads(expected)["name"]
            raise ArchiveBroken(f"its member {name} is not as it was written")
    if digests.readline():
        raise ArchiveBroken("it has more members than were written")


@contextmanager
def create_archive(location: str) -> Iterator[ArchiveWriter]:
    """Yield a writer; the archive appears under its name when the block has ended well, or never."""
    opened = _create_object(location) if is_bucket(location) else _create_file(Path(location))
    is_packed = urlsplit(location).path.endswith((".gz", ".tgz"))
    with opened as file, _packed(file) if is_packed else nullcontext(file) as stream:
        writer = ArchiveWriter(stream)
        yield writer
        writer.finish()


@contextmanager
def _packed(file: BinaryIO) -> Iterator[BinaryIO]:
    packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_GZIP_LEVEL, mtime=0)
    yield cast("BinaryIO", packed)
    # Not after a failure: what was not finished must not look as if it were.
    packed.close()


@contextmanager
def open_archive(location: str) -> Iterator[BinaryIO]:
    if is_bucket(location):
        store, name = _bucket(location)
        import obstore  # noqa: PLC0415 - an extra, see `_bucket`

        with _reach(location):
            size = obstore.head(store, name)["size"]
        yield cast("BinaryIO", _ObjectReader(store, name, size))
        return
    try:
        file = Path(location).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise ArchiveUnreachable(f"{location} cannot be read ({error.strerror}).") from error
    with file:
        yield file


def is_bucket(location: str) -> bool:
    return location.startswith("s3://")


@contextmanager
def _create_file(path: Path) -> Iterator[BinaryIO]:
    if path.exists():
        raise ArchiveUnreachable(f"{path} exists already: choose another name.")
    partial = path.with_name(f".{path.name}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    except OSError as error:
        raise ArchiveUnreachable(f"{path} cannot be written ({error.strerror}).") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _FILE_MODE)
            yield file
            file.flush()
            os.fsync(descriptor)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _create_object(location: str) -> Iterator[BinaryIO]:
    store, name = _bucket(location)
    import obstore  # noqa: PLC0415 - an extra, see `_bucket`

    with _reach(location):
        if _exists(store, name):
            raise ArchiveUnreachable(
                f"{_without_query(location)} exists already: choose another name."
            )
        # A multipart upload: nothing is there before it is closed, and nothing if it is not.
        writer = obstore.open_writer(store, name, buffer_size=16 << 20)
        yield cast("BinaryIO", writer)
        writer.close()


def _exists(store: Any, name: str) -> bool:
    import obstore  # noqa: PLC0415 - an extra, see `_bucket`

    try:
        obstore.head(store, name)
    except FileNotFoundError:
        return False
    return True


class _ObjectReader(io.RawIOBase):
    """An object of a bucket, read in ranges, so that a lost connection costs one of them."""

    def __init__(self, store: Any, name: str, size: int) -> None:
        self._store, self._name, self._size = store, name, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import obstore  # noqa: PLC0415 - an extra, see `_bucket`

        end = min(self._at + len(buffer), self._size)
        if end == self._at:
            return 0
        data = obstore.get_range(self._store, self._name, start=self._at, end=end)
        buffer[: end - self._at] = memoryview(data)
        count, self._at = end - self._at, end
        return count


def _bucket(location: str) -> tuple[Any, str]:
    """Return the bucket that a location names, and the name of the object in it."""
    try:
        from hublet.storage.s3_store import connect  # noqa: PLC0415 - its library is an extra
    except ImportError:
        raise ArchiveUnreachable(
            "A backup in a bucket needs the extra s3: pip install 'hublet[s3]'."
        ) from None
    where = S3Location.parse(location)
    if not where.prefix or not where.bucket:
        raise ArchiveUnreachable(
            f"{location} names no object: write s3://bucket/name.tar, with ?endpoint=… and "
            "&region=… if need be."
        )
    return connect(replace(where, prefix=""), find_credentials()), where.prefix


@contextmanager
def _reach(location: str) -> Iterator[None]:
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra, see `_bucket`

    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        # Its text may tell a signed address; the kind of the error says enough.
        raise ArchiveUnreachable(
            f"{_without_query(location)} cannot be reached ({type(error).__name__}): see that the "
            "bucket exists, and that AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY open it."
        ) from None


def _without_query(location: str) -> str:
    return urlunsplit(urlsplit(location)._replace(query=""))
