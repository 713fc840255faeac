"""Blob folder: files on the disk, each under the SHA-256 of its bytes. A spool takes what arrives;
`keep` gives it its name.
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
from hublet.repos.records import Blob

# Every function blocks on the disk; call them from a thread where a file can be large.

_CHUNK = 1 << 20


def blobs_folder(data_dir: Path) -> Path:
    return data_dir / "blobs"


def incoming_folder(data_dir: Path) -> Path:
    return blobs_folder(data_dir) / "incoming"


def parts_folder(data_dir: Path) -> Path:
    """Where the parts of uploads wait that come in several."""
    return blobs_folder(data_dir) / "parts"


def blob_path(data_dir: Path, sha256: str) -> Path:
    return blobs_folder(data_dir) / sha256[:2] / sha256[2:4] / sha256


class Spool:
    """Bytes that arrive piece by piece; they vanish unless `keep` is called.

    Git's name for them begins with their size: when that is known before they arrive, the name
    is found on the way, and the blob that `keep` returns has it.
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
        """Return what git would call these bytes; reads them once more."""
        self._file.flush()
        digest = _git_digest(self.size)
        with self.path.open("rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
        return digest.hexdigest()

    def keep(self) -> Blob:
        """Put the bytes, safe on the disk, where their digest says; return what they are now."""
        self._file.flush()
        os.fsync(self._file.fileno())
        target = blob_path(self._data_dir, self.sha256)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Replacing bytes by the same bytes harms nobody who reads them, and makes them new:
        # what is cleared away is old and belongs to nobody.
        self.path.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._file.close()
        git_sha1 = None if self._sha1 is None else self._sha1.hexdigest()
        return Blob(sha256=self.sha256, size=self.size, git_sha1=git_sha1)

    def move_to(self, target: Path) -> None:
        """Put the bytes, which need not survive a power cut, under a name of their own."""
        self._file.close()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(target)

    def close(self) -> None:
        """Forget what was not kept."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def _git_digest(size: int) -> "hashlib._Hash":
    # Git's names are SHA-1 by definition; nothing here rests on its strength.
    return hashlib.sha1(b"blob %d\x00" % size, usedforsecurity=False)


# So much is gathered before a thread writes it down.
_BUFFER_BYTES = 1 << 20


@asynccontextmanager
async def spool_upload(
    chunks: AsyncIterable[bytes], data_dir: Path, *, largest: int
) -> AsyncIterator[Spool]:
    """Write what arrives to a spool that vanishes afterwards, unless it was kept."""
    spool = await asyncio.to_thread(Spool, data_dir)
    try:
        await _fill(spool, chunks, largest=largest)
        yield spool
    finally:
        await asyncio.to_thread(spool.close)


async def _fill(spool: Spool, chunks: AsyncIterable[bytes], *, largest: int) -> None:
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if spool.size + len(gathered) > largest:
            raise FileTooLarge(largest)
        if len(gathered) >= _BUFFER_BYTES:
            await asyncio.to_thread(spool.write, gathered)
            gathered = bytearray()
    await asyncio.to_thread(spool.write, gathered)
