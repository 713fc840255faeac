"""Shards of Xet: manifests of files as segments of xorbs, and of the chunks of new xorbs.

A shard is a sequence of records of 48 bytes, up to 1.4 million of them. `parse` keeps them as bytes,
which take no more memory than the body; what a shard claims is compared with the hub's own layouts
elsewhere.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hublet.core.dataclasses import dataclass
from hublet.storage.errors import InvalidShard
from hublet.storage.xet_hashes import HASH_BYTES, Node, keyed_hash, to_text
from hublet.storage.xorbs import LARGEST_CHUNK, MOST_CHUNKS, XorbLayout

LARGEST_SHARD = 64 * 1024 * 1024

_TAG = b"HFRepoMetaData\x00" + bytes.fromhex("556967456a7b815783a5bdd95ccdd14aa9")
_VERSION = 2
_FOOTER_VERSION = 1
_FOOTER_BYTES = 200
# A hash and four numbers, whose meaning depends on where the record stands.
_RECORD = struct.Struct("<32s4I")
_HEADER = struct.Struct(f"<{len(_TAG)}s2Q")
_END_HASH = b"\xff" * HASH_BYTES

_HAS_RANGE_HASHES = 1 << 31
_HAS_SHA256 = 1 << 30


class Segment(NamedTuple):
    """Run of chunks of a xorb, from start to before end, and how many bytes they should hold."""

    xorb: bytes
    length: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFile:
    """File as a list of segments; what the uploader says of it is a claim until verified."""

    hash: bytes
    segment_records: bytes
    # One for each segment, or none at all.
    range_records: bytes
    sha256: str | None
    # Where its records begin in the shard.
    offset: int

    @property
    def segments(self) -> Iterator[Segment]:
        for xorb, _, length, start, end in _RECORD.iter_unpack(self.segment_records):
            yield Segment(xorb, length, start, end)

    @property
    def segment_count(self) -> int:
        return len(self.segment_records) // _RECORD.size

    @property
    def range_hashes(self) -> Iterator[bytes]:
        return (digest for digest, *_ in _RECORD.iter_unpack(self.range_records))

    @property
    def size(self) -> int:
        return sum(length for _, _, length, _, _ in _RECORD.iter_unpack(self.segment_records))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardXorb:
    hash: bytes
    chunk_records: bytes

    @property
    def chunks(self) -> list[Node]:
        return [
            Node(digest, length)
            for digest, _, length, _, _ in _RECORD.iter_unpack(self.chunk_records)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    files: list[ShardFile]
    xorbs: list[ShardXorb]


class _SectionHeader(NamedTuple):
    """First record of a file or xorb."""

    hash: bytes
    flags: int
    # Of segments or chunks.
    records: int
    # Where it begins in the shard.
    offset: int


def parse(data: bytes | memoryview) -> Shard:
    """Read an uploaded shard; raise InvalidShard where it breaks off or counts impossibly much."""
    entries = list(read_entries(data))
    return Shard(
        files=[each for each in entries if isinstance(each, ShardFile)],
        xorbs=[each for each in entries if isinstance(each, ShardXorb)],
    )


def read_entries(data: bytes | memoryview) -> Iterator[ShardFile | ShardXorb]:
    """Like `parse`, one by one: the files, then the xorbs."""
    view = memoryview(data)
    if len(view) < _HEADER.size:
        raise InvalidShard("The shard is shorter than its header.")
    tag, version, _ = _HEADER.unpack_from(view)
    if tag != _TAG or version != _VERSION:
        raise InvalidShard(f"This is not a shard of version {_VERSION}.")
    records = _Records(view, at=_HEADER.size)
    yield from _files(records)
    # What follows, lookups and a footer, is for readers of stored shards.
    yield from _xorbs(records)


def read_file(data: bytes | memoryview, offset: int) -> ShardFile:
    """Read the file whose records begin at an offset that `read_entries` gave."""
    return next(_files(_Records(memoryview(data), at=offset)))


class _Records:
    """Reads record after record, and never announces more than the body can hold."""

    def __init__(self, view: memoryview, *, at: int) -> None:
        self._view = view
        self._at = at

    def header(self) -> _SectionHeader | None:
        """Return the next record; None where it ends the list."""
        offset = self._at
        digest, flags, count, _, _ = _RECORD.unpack(self.take(1))
        return None if digest == _END_HASH else _SectionHeader(digest, flags, count, offset)

    def take(self, count: int) -> bytes:
        start, end = self._at, self._at + count * _RECORD.size
        if end > len(self._view):
            raise InvalidShard(f"The shard ends before the {count} records that must follow.")
        self._at = end
        return bytes(self._view[start:end])


def _files(records: _Records) -> Iterator[ShardFile]:
    while (header := records.header()) is not None:
        yield ShardFile(
            hash=header.hash,
            segment_records=records.take(header.records),
            range_records=records.take(header.records if header.flags & _HAS_RANGE_HASHES else 0),
            sha256=_hash_text(records) if header.flags & _HAS_SHA256 else None,
            offset=header.offset,
        )


def _hash_text(records: _Records) -> str:
    return to_text(records.take(1)[:HASH_BYTES])


def _xorbs(records: _Records) -> Iterator[ShardXorb]:
    while (header := records.header()) is not None:
        if not 1 <= header.records <= MOST_CHUNKS:
            raise InvalidShard(f"A xorb has 1 to {MOST_CHUNKS} chunks, not {header.records}.")
        xorb = ShardXorb(hash=header.hash, chunk_records=records.take(header.records))
        if any(not 1 <= chunk.length <= LARGEST_CHUNK for chunk in xorb.chunks):
            raise InvalidShard(f"A chunk has 1 to {LARGEST_CHUNK} bytes.")
        yield xorb


def deduplication_shard(
    xorbs: Iterable[tuple[bytes, XorbLayout]], *, key: bytes, created_at: int, expires_at: int
) -> bytes:
    """Return the response to a chunk query: xorbs whose chunks' hashes are keyed.

    Only who has a chunk can find it in there. Times are seconds since 1970.
    """
    parts = [_HEADER.pack(_TAG, _VERSION, _FOOTER_BYTES), _END_RECORD]
    stored = raw = 0
    for digest, layout in xorbs:
        parts.append(_record(digest, 0, len(layout), layout.size, layout.stored_size))
        parts += _keyed_chunks(layout, key)
        stored += layout.stored_size
        raw += layout.size
    parts.append(_END_RECORD)
    end = sum(len(part) for part in parts)
    numbers = [_HEADER.size, _HEADER.size + _RECORD.size, end, 0, end, 0, end, 0]
    footer = struct.pack("<9Q", _FOOTER_VERSION, *numbers)
    footer += key + struct.pack("<2Q", created_at, expires_at) + bytes(48)
    footer += struct.pack("<4Q", stored, raw, stored, end)
    return b"".join(parts) + footer


def _keyed_chunks(layout: XorbLayout, key: bytes) -> Iterator[bytes]:
    offset = 0
    for digest, length in layout.chunks(0, len(layout)):
        yield _record(keyed_hash(digest, key), offset, length, 0, 0)
        offset += length


def _record(digest: bytes, *numbers: int) -> bytes:
    return _RECORD.pack(digest, *numbers)


_END_RECORD = _record(_END_HASH, 0, 0, 0, 0)
