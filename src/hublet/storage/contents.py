"""Contents: the bytes of blobs, wherever they lie.

Everything here but `put_blob`'s caller blocks; call it from a thread.
"""

from collections.abc import Iterator

from hublet.storage.object_store import ObjectStore, blob_key, xorb_key
from hublet.storage.records import Blob, BlobSegment, Content
from hublet.storage.spools import Spool
from hublet.storage.xorbs import read_chunks


def put_blob(store: ObjectStore, spool: Spool) -> Blob:
    """Store the bytes of a spool as one object, safe on the disk; return the blob."""
    blob = spool.blob
    store.put(blob_key(blob.sha256), spool)
    return blob


def pieces(store: ObjectStore, content: Content, start: int, end: int) -> Iterator[bytes]:
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
) -> Iterator[bytes]:
    at = 0
    stored = b"".join(store.pieces(xorb_key(segment.xorb), segment.start_byte, segment.end_byte))
    for chunk in read_chunks(stored):
        first, at = at, at + len(chunk)
        if at <= start:
            continue
        if first >= end:
            return
        yield chunk[max(start - first, 0) : end - first]
