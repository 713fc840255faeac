"""Blob folder: files on the disk, each named by the SHA-256 of its bytes.

A spool receives an upload; `Spool.store` moves it into the folder. Everything here blocks on the
disk; call it from a thread where a file can be large.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from hublet.repos.errors import FileTooLarge
from hublet.repos.git.objects import header_of
from hublet.repos.git.packs import sync_folder
from hublet.repos.records import Blob

_CHUNK = 1 << 20
# An upload is written in pieces of this size, each by a thread.
_BUFFER_BYTES = 1 << 20


def blobs_folder(data_dir: Path) -> Path:
    return data_dir / "blobs"


def incoming_folder(data_dir: Path) -> Path:
    return blobs_folder(data_dir) / "incoming"


def parts_folder(data_dir: Path) -> Path:
    """Return the folder for parts of multipart uploads that are not complete yet."""
    return blobs_folder(data_dir) / "parts"


def blob_path(data_dir: Path, sha256: str) -> Path:
    return blobs_folder(data_dir) / sha256[:2] / sha256[2:4] / sha256


class Spool:
    """Temporary file for an upload; it is removed on `close` unless `store` was called.

    The id of a git blob is a digest that begins with its size: when the size is known from the
    start, it is computed on the way, and the blob that `store` returns has it.
    """

    def __init__(self, data_dir: Path, *, size: int | None = None) -> None:
        self._data_dir = data_dir
        incoming = incoming_folder(data_dir)
        incoming.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.NamedTemporaryFile(dir=incoming, delete=False)  # noqa: SIM115
        self._sha256 = hashlib.sha256()
        self._sha1 = None if size is None else _git_digest(size)
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._file.write(data)
        self._sha256.update(data)
        if self._sha1 is not None:
            self._sha1.update(data)
        self.size += len(data)

    def write_file(self, path: Path) -> None:
        with path.open("rb") as file:
            while data := file.read(_CHUNK):
                self.write(data)

    @property
    def path(self) -> Path:
        return Path(self._file.name)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def read_all(self) -> bytes:
        """Return everything; only for what is known to be small."""
        self._file.flush()
        return self.path.read_bytes()

    def git_sha1(self) -> str:
        """Return the id of these bytes as a git blob; reads them once more."""
        self._file.flush()
        digest = _git_digest(self.size)
        with self.path.open("rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
        return digest.hexdigest()

    def store(self) -> Blob:
        """Move the bytes into the blob folder, safe on the disk; return the blob."""
        self._file.flush()
        os.fsync(self._file.fileno())
        target = blob_path(self._data_dir, self.sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Replacing bytes by the same bytes does not disturb readers, and makes the file new:
        # pruning removes only old files that nothing points to.
        self.path.replace(target)
        sync_folder(target.parent)
        self._file.close()
        git_sha1 = None if self._sha1 is None else self._sha1.hexdigest()
        return Blob(sha256=self.sha256, size=self.size, git_sha1=git_sha1)

    def move_to(self, target: Path) -> None:
        """Move the bytes, which need not survive a power cut, to another path."""
        self._file.close()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(target)

    def close(self) -> None:
        """Remove the temporary file, unless it was stored."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def _git_digest(size: int) -> "hashlib._Hash":
    # Ids of git objects are SHA-1 by definition; nothing here rests on its strength.
    return hashlib.sha1(header_of("blob", size), usedforsecurity=False)


@asynccontextmanager
async def spool_upload(
    chunks: AsyncIterable[bytes], data_dir: Path, *, largest: int
) -> AsyncIterator[Spool]:
    """Write a body to a spool, which is removed afterwards unless it was stored."""
    spool = await asyncio.to_thread(Spool, data_dir)
    try:
        await fill(spool, chunks, largest=largest)
        yield spool
    finally:
        await asyncio.to_thread(spool.close)


async def fill(spool: Spool, chunks: AsyncIterable[bytes], *, largest: int) -> None:
    """Write a body to a spool in large pieces; raise FileTooLarge as soon as it is too long."""
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if spool.size + len(gathered) > largest:
            raise FileTooLarge(largest)
        if len(gathered) >= _BUFFER_BYTES:
            await asyncio.to_thread(spool.write, gathered)
            gathered = bytearray()
    await asyncio.to_thread(spool.write, gathered)
