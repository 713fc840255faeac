"""Verification of uploads by Xet: call these functions in worker processes (`storage.workers`).

The clients verify nothing when they download, so nothing that is uploaded is believed: a xorb is read
and hashed whole, and a file's claims are compared with the layouts of verified xorbs.
"""

import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hublet.storage.errors import InvalidShard
from hublet.storage.shards import Segment, ShardFile, ShardXorb
from hublet.storage.xet_hashes import Node, file_hash, to_text
from hublet.storage.xorbs import SMALLEST_CHUNK, XorbLayout, form_of, read_chunks, verify

# So many chunks of a file may be shorter than clients cut them.
_FREE_CHUNKS = 16


def verify_upload(path: Path, expected: bytes) -> tuple[XorbLayout, str]:
    """Verify a xorb that lies in a file; return its layout, and the digest of its form."""
    data = _mapped(path)
    layout = verify(data, expected)
    return layout, form_of(data[: layout.stored_size])


def form_of_file(path: Path) -> str:
    """Return the digest of the form of a xorb without a footer that lies in a file."""
    return form_of(_mapped(path))


def _mapped(path: Path) -> memoryview:
    """Return the bytes of a file, without reading it into memory."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        # It is closed when nobody holds it any more: an error's traceback still has views of it.
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def verify_stored_xorb(path: Path, expected: bytes) -> tuple[XorbLayout, bool]:
    """Verify a xorb at rest; return its layout, and whether the footer behind it is right."""
    layout = verify(_mapped(path), expected)
    with path.open("rb") as file:
        file.seek(layout.stored_size)
        return layout, file.read() == layout.footer()


def verify_xorb_claim(claim: ShardXorb, layout: XorbLayout) -> None:
    """Compare what a shard says of a xorb with the hub's own layout of it."""
    if claim.chunks != layout.chunks(0, len(layout)):
        raise InvalidShard(f"The shard's chunks of the xorb {to_text(claim.hash)} are not its own.")


def verify_file(file: ShardFile, layouts: Mapping[bytes, XorbLayout]) -> None:
    """Compare what a shard says of a file with layouts of verified xorbs; raise InvalidShard.

    `layouts` may read each one when it is asked for it: it is asked for one segment at a time.
    """
    if len(file.range_records) != len(file.segment_records):
        raise InvalidShard("Each segment of a file needs a verification record.")
    if file_hash(_chunks_of(file, layouts)) != file.hash:
        raise InvalidShard(f"The segments do not make up the file {to_text(file.hash)}.")


def _chunks_of(file: ShardFile, layouts: Mapping[bytes, XorbLayout]) -> Iterator[Node]:
    size = count = 0
    for segment, claimed in zip(file.segments, file.range_hashes, strict=True):
        layout = _layout_of(segment, layouts)
        size += segment.length
        count += segment.end - segment.start
        # A record of 48 bytes can name 8192 chunks: this bounds what the uploader makes us hash.
        if count > _FREE_CHUNKS + size // SMALLEST_CHUNK:
            raise InvalidShard("All chunks of a file but the last have 8 KiB or more.")
        if layout.range_hash(segment.start, segment.end) != claimed:
            raise InvalidShard("A segment's verification record does not match its chunks.")
        yield from layout.chunks(segment.start, segment.end)


def _layout_of(segment: Segment, layouts: Mapping[bytes, XorbLayout]) -> XorbLayout:
    layout = layouts.get(segment.xorb)
    if layout is None:
        raise InvalidShard(f"The xorb {to_text(segment.xorb)} was not uploaded here.")
    if not segment.start < segment.end <= len(layout):
        raise InvalidShard(
            f"A segment names the chunks from {segment.start} to before {segment.end} of the xorb "
            f"{to_text(segment.xorb)}, which has {len(layout)}."
        )
    length = layout.length(segment.start, segment.end)
    if length != segment.length:
        raise InvalidShard(
            f"A segment's length is not that of its chunks: {length}, not {segment.length}."
        )
    return layout


def sha256_of(pieces: Iterable[bytes | memoryview]) -> str:
    """Return the SHA-256 of a file, given pieces of stored xorbs that hold whole chunks."""
    digest = hashlib.sha256()
    for piece in pieces:
        for chunk in read_chunks(piece):
            digest.update(chunk)
    return digest.hexdigest()
