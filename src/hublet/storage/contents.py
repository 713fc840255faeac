"""Contents: the bytes of blobs, wherever they lie.

All but the asynchronous functions block; call them from a thread.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from hublet.storage.object_store import ObjectStore, blob_key, xorb_key
from hublet.storage.records import Blob, BlobSegment, Content
from hublet.storage.spools import Spool, fill
from hublet.storage.xorbs import Buffer, read_stream


@asynccontextmanager
async def spool_upload(
    store: ObjectStore, chunks: AsyncIterable[Buffer], *, largest: int
) -> AsyncIterator[Spool]:
    """Write a body to a spool, which is removed afterwards unless it was put into the store."""
    spool = await asyncio.to_thread(store.new_spool)
    try:
        await fill(spool, chunks, largest=largest)
        yield spool
    finally:
        await asyncio.to_thread(spool.close)


def put_blob(store: ObjectStore, spool: Spool) -> Blob:
    """Store the bytes of a spool as one object, safe on the disk; return the blob."""
    blob = spool.blob
    store.put(blob_key(blob.sha256), spool)
    return blob


def pieces(store: ObjectStore, content: Content, start: int, end: int) -> Generator[Buffer]:
    """Yield the bytes of a blob from start to before end."""
    if content.is_whole:
        yield from store.pieces(blob_key(content.sha256), start, end)
        return
    at = 0
    for segment in content.segments:
        first, at = at, at + segment.size
        if at > start and first < end:
            yield from _segment_pieces(store, segment, start - first, end - first)


def _segment_pieces(
    store: ObjectStore, segment: BlobSegment, start: int, end: int
) -> Iterator[Buffer]:
    stored = store.pieces(xorb_key(segment.xorb), segment.start_byte, segment.end_byte)
    return read_stream(stored, start, end)


class ContentSource:
    """Content as a response or a copy reads it: in one piece from a path, or in pieces."""

    def __init__(self, store: ObjectStore, content: Content) -> None:
        self._store = store
        self._content = content

    @property
    def path(self) -> Path | None:
        content = self._content
        return self._store.local_path(blob_key(content.sha256)) if content.is_whole else None

    def pieces(self, start: int, end: int) -> Generator[Buffer]:
        return pieces(self._store, self._content, start, end)
