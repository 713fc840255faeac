"""Verification of uploaded shards against stored xorbs, in worker processes.

A shard lies in a file and is read there, part by part. `outline` tells what it names, so that the hub
can look up which of that is known; the other functions compare its claims with the layouts of
verified xorbs, and read the files that it makes up of them.
"""

import mmap
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hublet.core.dataclasses import dataclass
from hublet.storage.errors import InvalidShard
from hublet.storage.object_store import ObjectStore, xorb_key
from hublet.storage.records import Blob, BlobSegment, CutBlob, Xorb
from hublet.storage.shards import (
    Segment,
    ShardFile,
    ShardXorb,
    deduplication_shard,
    read_entries,
    read_file,
)
from hublet.storage.verification import sha256_of, verify_file, verify_xorb_claim
from hublet.storage.xet_hashes import last_number, to_text
from hublet.storage.xorb_objects import LayoutCache
from hublet.storage.xorbs import XorbLayout

# What one shard may refer to: more than any client puts into one, and still hours of work less than
# repetitions of one large xorb could make of 64 MiB.
MOST_CHUNKS_OF_FILE = 2_000_000
MOST_CHUNKS_OF_SHARD = 16_000_000
# Segments of all files of a shard, beyond one for each file. Clients share runs of 8 chunks or more,
# so they would need 100 GB of nothing but such runs; each takes some hundred bytes of memory.
MOST_FURTHER_SEGMENTS = 200_000

# How much of a stored xorb is read at once.
_PIECE_BYTES = 4 << 20
# Clients ask for a file's first chunk, and for those whose last number is divisible by this.
_QUERIED = 1024

_layouts = LayoutCache()


class FileOutline(NamedTuple):
    """A file that a shard names; its size is a claim."""

    hash: bytes
    size: int
    # Where its records begin in the shard.
    offset: int


class ShardOutline(NamedTuple):
    files: list[FileOutline]
    # All xorbs that it names, once each.
    xorbs: list[bytes]


class FileCheck(NamedTuple):
    """Request to verify one file of a shard."""

    offset: int
    # The SHA-256 of its content, if the repository has it already: then it is not read again.
    known_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    hash: str
    sha256: str
    size: int
    segments: tuple[BlobSegment, ...]
    # The chunks that clients may ask for, and the name of the xorb of each.
    chunks: dict[str, str]

    @property
    def cut_blob(self) -> CutBlob:
        blob = Blob(sha256=self.sha256, size=self.size)
        return CutBlob(blob=blob, xet_hash=self.hash, segments=self.segments)

    @property
    def xorbs(self) -> list[str]:
        """Return the names of its xorbs, each once, in their order."""
        return list(dict.fromkeys(segment.xorb for segment in self.segments))


def outline(path: Path) -> ShardOutline:
    """Read what a shard names; raise InvalidShard where it breaks off or names too much."""
    files: list[FileOutline] = []
    xorbs: dict[bytes, None] = {}
    chunks = segments = 0
    for entry in read_entries(_mapped(path)):
        if isinstance(entry, ShardXorb):
            xorbs[entry.hash] = None
            continue
        files.append(FileOutline(entry.hash, entry.size, entry.offset))
        xorbs |= dict.fromkeys(segment.xorb for segment in entry.segments)
        chunks += _chunks_of(entry)
        segments += entry.segment_count
        if segments - len(files) > MOST_FURTHER_SEGMENTS:
            raise InvalidShard(
                f"The files of a shard have at most {MOST_FURTHER_SEGMENTS} segments besides the "
                "first of each: send them in several shards, or in longer segments."
            )
    if chunks > MOST_CHUNKS_OF_SHARD:
        raise InvalidShard(f"The files of a shard have at most {MOST_CHUNKS_OF_SHARD} chunks.")
    return ShardOutline(files, list(xorbs))


def _chunks_of(file: ShardFile) -> int:
    chunks = sum(max(segment.end - segment.start, 0) for segment in file.segments)
    if chunks > MOST_CHUNKS_OF_FILE:
        raise InvalidShard(f"A file has at most {MOST_CHUNKS_OF_FILE} chunks.")
    return chunks


def verify_claims(store: ObjectStore, path: Path, xorbs: Mapping[bytes, Xorb]) -> None:
    """Compare what a shard says of new xorbs with the hub's own layouts of them."""
    for entry in read_entries(_mapped(path)):
        if isinstance(entry, ShardXorb):
            verify_xorb_claim(entry, _layout_of(store, entry.hash, xorbs))


def verify_files(
    store: ObjectStore, path: Path, checks: Sequence[FileCheck], xorbs: Mapping[bytes, Xorb]
) -> list[VerifiedFile]:
    """Verify files of a shard, given all xorbs that their segments may name; compute their SHA-256."""
    data = _mapped(path)
    return [_verify(store, read_file(data, each.offset), each, xorbs) for each in checks]


def _verify(
    store: ObjectStore, file: ShardFile, check: FileCheck, xorbs: Mapping[bytes, Xorb]
) -> VerifiedFile:
    layouts = _Layouts(store, xorbs)
    verify_file(file, layouts)
    sha256 = check.known_sha256 or sha256_of(_stored_pieces(store, file.segments, xorbs))
    if file.sha256 not in {None, sha256}:
        raise InvalidShard(
            f"The file {to_text(file.hash)} has the SHA-256 {sha256}, not {file.sha256}."
        )
    return VerifiedFile(
        hash=to_text(file.hash),
        sha256=sha256,
        size=file.size,
        segments=tuple(
            _blob_segment(each, xorbs[each.xorb].name, layouts[each.xorb]) for each in file.segments
        ),
        chunks=_queried_chunks(file, xorbs, layouts),
    )


class _Layouts(Mapping[bytes, XorbLayout]):
    """Layouts by xorb, each read when it is asked for: a file of many xorbs would fill the memory."""

    def __init__(self, store: ObjectStore, xorbs: Mapping[bytes, Xorb]) -> None:
        self._store = store
        self._xorbs = xorbs

    def __getitem__(self, xorb: bytes) -> XorbLayout:
        return _layouts.get(self._store, self._xorbs[xorb])

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._xorbs)

    def __len__(self) -> int:
        return len(self._xorbs)


def _layout_of(store: ObjectStore, digest: bytes, xorbs: Mapping[bytes, Xorb]) -> XorbLayout:
    if digest not in xorbs:
        raise InvalidShard(f"The xorb {to_text(digest)} was not uploaded here.")
    return _layouts.get(store, xorbs[digest])


def _stored_pieces(
    store: ObjectStore, segments: Iterable[Segment], xorbs: Mapping[bytes, Xorb]
) -> Iterator[bytes | memoryview]:
    """Yield the stored bytes of the segments in pieces that hold whole chunks."""
    layouts = _Layouts(store, xorbs)
    for segment in segments:
        layout, key = layouts[segment.xorb], xorb_key(xorbs[segment.xorb].name)
        path = store.local_path(key)
        if path is not None:
            yield _mapped(path)[slice(*layout.stored_range(segment.start, segment.end))]
            continue
        for start, end in _fitting_runs(segment, layout):
            yield b"".join(store.pieces(key, *layout.stored_range(start, end)))


def _fitting_runs(segment: Segment, layout: XorbLayout) -> Iterator[tuple[int, int]]:
    """Yield runs of chunks that are read at once."""
    start = segment.start
    while start < segment.end:
        first, _ = layout.stored_range(start, start + 1)
        fitting = bisect_right(layout.stored_ends, first + _PIECE_BYTES)
        end = min(max(fitting, start + 1), segment.end)
        yield start, end
        start = end


def _blob_segment(segment: Segment, xorb: str, layout: XorbLayout) -> BlobSegment:
    start_byte, end_byte = layout.stored_range(segment.start, segment.end)
    return BlobSegment(
        xorb=xorb,
        start_chunk=segment.start,
        end_chunk=segment.end,
        start_byte=start_byte,
        end_byte=end_byte,
        size=segment.length,
    )


def _queried_chunks(
    file: ShardFile, xorbs: Mapping[bytes, Xorb], layouts: Mapping[bytes, XorbLayout]
) -> dict[str, str]:
    chunks: dict[str, str] = {}
    for segment in file.segments:
        layout = layouts[segment.xorb]
        for at in range(segment.start, segment.end):
            chunk = layout.chunk(at)
            if not chunks or last_number(chunk) % _QUERIED == 0:
                chunks.setdefault(to_text(chunk), xorbs[segment.xorb].name)
    return chunks


def answer_chunk_query(
    store: ObjectStore,
    xorbs: Sequence[tuple[bytes, Xorb]],
    *,
    key: bytes,
    created_at: int,
    expires_at: int,
) -> bytes:
    """Return the response to a chunk query: a shard of these xorbs."""
    layouts = [(digest, _layouts.get(store, xorb)) for digest, xorb in xorbs]
    return deduplication_shard(layouts, key=key, created_at=created_at, expires_at=expires_at)


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        data = file.read(1)
        # An empty file cannot be mapped. The map is closed when nobody holds it any more.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if data else data
    return memoryview(mapped)
