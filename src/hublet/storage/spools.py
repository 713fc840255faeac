"""Spools: temporary files that take an upload, and its digests on the way.

A spool blocks on the disk; `fill` writes to it from threads.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from hublet.storage.errors import FileTooLarge
from hublet.storage.records import Blob
from hublet.storage.xorbs import Buffer

_PIECE_BYTES = 1 << 20


class Spool:
    """Temporary file for an upload; it is removed on `close` unless it was moved.

    The id of a git blob is a digest that begins with its size: when the size is known from the
    start, it is computed on the way, and `blob` has it. What is known by another digest than
    SHA-256 needs no such hash: `hashed` is False.
    """

    def __init__(self, folder: Path, *, size: int | None = None, hashed: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115
        self._sha256 = hashlib.sha256() if hashed else None
        self._sha1 = None if size is None else git_digest(size)
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

    def write(self, data: Buffer) -> None:
        self._file.write(data)
        if self._sha256 is not None:
            self._sha256.update(data)
        if self._sha1 is not None:
            self._sha1.update(data)
        self.size += len(data)

    def write_all(self, pieces: Iterable[Buffer]) -> None:
        for piece in pieces:
            self.write(piece)

    @property
    def path(self) -> Path:
        return Path(self._file.name)

    @property
    def sha256(self) -> str:
        if self._sha256 is None:
            raise ValueError("This spool computes no SHA-256.")
        return self._sha256.hexdigest()

    @property
    def blob(self) -> Blob:
        git_sha1 = None if self._sha1 is None else self._sha1.hexdigest()
        return Blob(sha256=self.sha256, size=self.size, git_sha1=git_sha1)

    def read_all(self) -> bytes:
        """Return everything; only for what is known to be small."""
        self._file.flush()
        return self.path.read_bytes()

    def git_sha1(self) -> str:
        """Return the id of these bytes as a git blob; reads them once more."""
        digest = git_digest(self.size)
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def pieces(self) -> Iterator[bytes]:
        """Yield everything that was written, from the beginning."""
        self._file.flush()
        with self.path.open("rb") as file:
            while data := file.read(_PIECE_BYTES):
                yield data

    def truncate(self, size: int) -> None:
        """Drop what follows, and go on writing there; only for a spool without digests."""
        self._file.seek(size)
        self._file.truncate()
        self.size = size

    def flush(self) -> None:
        """Let others who open the path see everything that was written."""
        self._file.flush()

    def sync(self) -> None:
        """Make the bytes survive a power cut."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def move_to(self, target: Path) -> None:
        self._file.close()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(target)

    def close(self) -> None:
        """Remove the temporary file, unless it was moved."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def git_digest(size: int) -> "hashlib._Hash":
    """Return the beginning of the digest that is the id of a git blob of this size."""
    # Ids of git objects are SHA-1 by definition; nothing here rests on its strength.
    return hashlib.sha1(b"blob %d\x00" % size, usedforsecurity=False)


@runtime_checkable
class DirectBody(Protocol):
    """A body that can be written as it comes from the network."""

    async def copy_to(self, write: Callable[[Buffer], object], *, most: int) -> bool:
        """Write it all in threads; False: nothing was written, it must be read in pieces."""
        ...


async def fill(spool: Spool, pieces: AsyncIterable[Buffer], *, largest: int) -> None:
    """Write a body to a spool; raise FileTooLarge as soon as it is too long.

    Of a body that breaks off, the spool has what arrived.
    """
    room = largest - spool.size
    if not isinstance(pieces, DirectBody) or not await pieces.copy_to(spool.write, most=room):
        await _fill_in_pieces(spool, pieces, largest=largest)


async def _fill_in_pieces(spool: Spool, pieces: AsyncIterable[Buffer], *, largest: int) -> None:
    """While a thread writes some pieces, the next ones arrive."""
    gathered: list[Buffer] = []
    size = written = spool.size
    writing: asyncio.Task[None] | None = None
    try:
        async for piece in pieces:
            size += len(piece)
            if size > largest:
                raise FileTooLarge(largest)
            gathered.append(piece)
            if size - written >= _PIECE_BYTES:
                if writing is not None:
                    await writing
                writing = asyncio.create_task(asyncio.to_thread(spool.write_all, gathered))
                gathered, written = [], size
    finally:
        # Nobody may close the spool while it is written to.
        if writing is not None:
            await writing
        await asyncio.to_thread(spool.write_all, gathered)
