"""Contents: the bytes of blobs, wherever they lie.

All but the asynchronous functions block; call them from a thread.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from hublet.core.config import Settings
from hublet.storage.object_store import ObjectKey, ObjectStore, blob_key, open_store, xorb_key
from hublet.storage.records import Blob, BlobSegment, Content
from hublet.storage.spools import Spool, fill, git_digest
from hublet.storage.xorbs import Buffer, read_stream

# Larger contents are downloaded from the bucket itself: such ones never lie in git.
LARGEST_STREAMED = 10 << 20
# As long as the hub's own signed links live; clients resume with the same address.
ADDRESS_LIFE = timedelta(hours=1)


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
        await asyncio.shield(asyncio.to_thread(spool.close))


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


def digest_object(store: ObjectStore, key: ObjectKey, *, size: int) -> Blob:
    """Read an object whole; return what blob it is, with its id in git."""
    sha256, sha1 = hashlib.sha256(), git_digest(size)
    for piece in store.pieces(key, 0, size):
        sha256.update(piece)
        sha1.update(piece)
    return Blob(sha256=sha256.hexdigest(), size=size, git_sha1=sha1.hexdigest())


def is_kept_whole(settings: Settings, size: int) -> bool:
    """Tell whether a content of this size stays one object, for redirected downloads."""
    url = settings.storage.url or ""
    return settings.storage.redirect and url.startswith("s3://") and size > LARGEST_STREAMED


def download_address(
    settings: Settings,
    content: Content,
    *,
    media_type: str | None = None,
    disposition: str | None = None,
) -> str | None:
    """Return an address of the bucket at which everybody can read a content for an hour.

    None where the hub sends it itself: it is small, or the repository reads it from xorbs. Whether
    another repository has it whole must not show, so the repository's own view alone decides.
    """
    if not content.is_whole or content.xet_hash is not None:
        return None
    if not is_kept_whole(settings, content.size):
        return None
    address = open_store(settings).presigned_url(
        blob_key(content.sha256), life=ADDRESS_LIFE, media_type=media_type, disposition=disposition
    )
    # Clients would follow an address of the hub's own origin with their token.
    return None if address is None or _origin(address) == _origin(settings.base_url) else address


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
