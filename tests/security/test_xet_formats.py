"""Hostile xorbs and shards: whatever is sent is what it says, or is refused, for a bounded price."""

import hashlib
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lz4.frame import LZ4FrameDecompressor

from hublet.storage import xorbs as xorbs_module
from hublet.storage.errors import InvalidShard, InvalidXorb
from hublet.storage.shards import Segment, ShardFile, parse
from hublet.storage.verification import verify_file, verify_xorb_claim
from hublet.storage.xet_hashes import file_hash
from hublet.storage.xorbs import LARGEST_CHUNK, XorbLayout, read_chunks, verify
from security import naive_xet_reader as naive
from security.xet_mutations import changed, nonsense_shards, nonsense_xorbs
from storage.xet_content import (
    END,
    header,
    make_shard,
    make_xorb,
    record,
    shard_file,
    shard_header,
    shard_xorb,
    stored_chunk,
)

# In `make test`, and in `make test-full`.
EXAMPLES = [200, pytest.param(5_000, marks=pytest.mark.full)]

CONTENTS = [b"one" * 30, bytes(range(256)) * 2, b"\x00" * 700, b"a", b"four" * 9]
SECOND = [b"other" * 20, bytes(90), b"b" * 9]
GOOD_XORBS = [make_xorb(CONTENTS, scheme)[1] for scheme in (0, 1, 2)]
GOOD_XORBS.append(b"".join(stored_chunk(each, at % 3) for at, each in enumerate(CONTENTS)))
GOOD_XORBS.append(GOOD_XORBS[0] + verify(GOOD_XORBS[0], make_xorb(CONTENTS)[0]).footer())

CHUNKS = {make_xorb(each)[0]: each for each in (CONTENTS, SECOND)}
LAYOUTS = {digest: verify(make_xorb(each)[1], digest) for digest, each in CHUNKS.items()}
ONE, TWO = CHUNKS


def segment(xorb: bytes, start: int, end: int) -> Segment:
    return Segment(xorb, LAYOUTS[xorb].length(start, end), start, end)


def file_of(*segments: Segment, sha256: str | None = None) -> bytes:
    contents = [each for part in segments for each in CHUNKS[part.xorb][part.start : part.end]]
    return shard_file(contents, segments, sha256=sha256)


SHA256 = hashlib.sha256(b"".join(CONTENTS)).hexdigest()
GOOD_SHARDS = [
    make_shard([file_of(segment(ONE, 0, 5), sha256=SHA256)], [shard_xorb(CONTENTS)]),
    make_shard([file_of(segment(ONE, 1, 3), segment(TWO, 0, 2), segment(ONE, 2, 5))], []),
    make_shard(
        [file_of(segment(TWO, at, 3)) for at in range(3)],
        [shard_xorb(CONTENTS), shard_xorb(SECOND)],
    ),
    make_shard([record(bytes(32), 1 << 31, 0, 0, 0)], []) + bytes(200),
]


class CountingDecompressor:
    """Decompresses as the real one does, and counts what came out."""

    given = 0

    def __init__(self) -> None:
        self._real = LZ4FrameDecompressor()

    def decompress(self, data: memoryview, most: int) -> bytes:
        content: bytes = self._real.decompress(data, most)
        CountingDecompressor.given += len(content)
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.fixture
def decompressed(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[CountingDecompressor]]:
    monkeypatch.setattr(xorbs_module, "LZ4FrameDecompressor", CountingDecompressor)
    yield CountingDecompressor
    CountingDecompressor.given = 0


def check_all(
    check: Callable[[bytes], None], bodies: st.SearchStrategy[bytes], *, examples: int
) -> None:
    settings(max_examples=examples)(given(bodies)(check))()


def check_xorb(body: bytes) -> None:
    """Insist that the hub reads what the naive reader reads, and refuses what that cannot read."""
    CountingDecompressor.given = 0
    try:
        read = naive.read_xorb(body)
    except naive.NotReadable:
        # Not for its hash, which the sender could mend.
        with pytest.raises(InvalidXorb, match=r"^(?!.*has the hash)"):
            verify(body, ONE)
    else:
        layout = verify(body, naive.root(read.contents))
        assert list(layout.stored_ends) == read.ends
        assert list(read_chunks(body[: layout.stored_size])) == read.contents
        if read.contents != CONTENTS:
            with pytest.raises(InvalidXorb):
                verify(body, ONE)
    # No header with a frame behind it has fewer than nine bytes; it is read at most three times.
    assert CountingDecompressor.given <= 3 * (LARGEST_CHUNK + 1) * (len(body) // 9)


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.usefixtures("decompressed")
def test_a_changed_xorb_is_what_it_says_or_is_refused(examples: int) -> None:
    bodies = changed(GOOD_XORBS)
    check_all(check_xorb, bodies | nonsense_xorbs(), examples=examples)


class CountingLayouts(Mapping[bytes, XorbLayout]):
    """The layouts, which count how often somebody asks for one."""

    def __init__(self, layouts: dict[bytes, XorbLayout]) -> None:
        self.layouts = layouts
        self.asked = 0

    def __getitem__(self, xorb: bytes) -> XorbLayout:
        self.asked += 1
        return self.layouts[xorb]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.layouts)

    def __len__(self) -> int:
        return len(self.layouts)


def accepts(file: ShardFile, layouts: Mapping[bytes, XorbLayout]) -> bool:
    try:
        verify_file(file, layouts)
    except InvalidShard:
        return False
    return True


def check_shard(body: bytes) -> None:
    layouts = CountingLayouts(LAYOUTS)
    try:
        shard = parse(body)
    except InvalidShard:
        return
    read = naive.read_shard(body)
    for file, same in zip(shard.files, read.files, strict=True):
        assert (file.hash, file.sha256) == (same.hash, same.sha256)
        assert [tuple(each) for each in file.segments] == same.segments
        if accepts(file, layouts):
            contents = naive.read_file(same, CHUNKS)
            assert file.size == sum(map(len, contents))
    for xorb, (digest, chunks) in zip(shard.xorbs, read.xorbs, strict=True):
        assert xorb.hash == digest
        assert [tuple(each) for each in xorb.chunks] == chunks
        if digest in LAYOUTS and chunks != [
            tuple(each) for each in LAYOUTS[digest].chunks(0, len(CHUNKS[digest]))
        ]:
            with pytest.raises(InvalidShard):
                verify_xorb_claim(xorb, LAYOUTS[digest])
    assert layouts.asked <= len(body) // 48


@pytest.mark.parametrize("examples", EXAMPLES)
def test_a_changed_shard_is_what_it_says_or_is_refused(examples: int) -> None:
    bodies = changed(GOOD_SHARDS)
    check_all(check_shard, bodies | nonsense_shards([*CHUNKS]), examples=examples)


@pytest.mark.parametrize("body", GOOD_SHARDS)
def test_the_unchanged_shards_are_good(body: bytes) -> None:
    assert all(accepts(file, LAYOUTS) for file in parse(body).files)


@pytest.mark.parametrize("body", GOOD_XORBS)
def test_the_unchanged_xorbs_are_good(body: bytes) -> None:
    assert naive.read_xorb(body).contents == CONTENTS
    check_xorb(body)


TINY = [b"t"] * 8192
TINY_XORB, TINY_BODY = make_xorb(TINY)
TINY_LAYOUT = verify(TINY_BODY, TINY_XORB)
PIECE = bytes(8192)
PIECE_XORB, PIECE_BODY = make_xorb([PIECE])
PIECE_LAYOUT = verify(PIECE_BODY, PIECE_XORB)


def peak_bytes(call: Callable[[], object]) -> int:
    """Return how much memory a call took at the most, above what there was."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def repeated(part: Segment, layout: XorbLayout, count: int, *, digest: bytes) -> bytes:
    """Return a shard of a file that has the same segment again and again."""
    claimed = layout.range_hash(part.start, part.end)
    segments = record(part.xorb, 0, part.length, part.start, part.end) * count
    ranges = record(claimed, 0, 0, 0, 0) * count
    return make_shard([record(digest, 1 << 31, count, 0, 0) + segments + ranges], [])


def test_records_that_name_thousands_of_tiny_chunks_are_refused_before_those_are_hashed() -> None:
    body = repeated(Segment(TINY_XORB, 8192, 0, 8192), TINY_LAYOUT, 1000, digest=ONE)
    [file] = parse(body).files
    layouts = CountingLayouts({TINY_XORB: TINY_LAYOUT})
    with pytest.raises(InvalidShard, match="8 KiB or more"):
        verify_file(file, layouts)
    assert layouts.asked == 1


def test_a_long_segment_pays_only_for_the_chunks_that_follow_it() -> None:
    """Whoever announces much content at the end has not earned many chunks before."""
    parts = [Segment(TINY_XORB, 10, 0, 10), Segment(TINY_XORB, 8192, 0, 8192)]
    body = shard_file([*TINY[:10], *TINY], parts)
    [file] = parse(make_shard([body], [])).files
    with pytest.raises(InvalidShard, match="8 KiB or more"):
        verify_file(file, {TINY_XORB: TINY_LAYOUT})


def test_a_file_of_many_segments_takes_no_memory_for_each() -> None:
    count = 3_000
    digest = naive.file_root([PIECE] * count)
    body = repeated(Segment(PIECE_XORB, 8192, 0, 1), PIECE_LAYOUT, count, digest=digest)
    layouts = CountingLayouts({PIECE_XORB: PIECE_LAYOUT})
    assert peak_bytes(lambda: parse(body)) < 1.1 * len(body)
    [file] = parse(body).files
    assert peak_bytes(lambda: verify_file(file, layouts)) < 50_000
    assert layouts.asked == count


def test_many_files_take_no_more_memory_than_a_few_times_their_shard() -> None:
    body = make_shard([file_of(segment(TWO, at % 3, 3)) for at in range(1_000)], [])
    assert peak_bytes(lambda: parse(body)) < 4 * len(body)


def test_the_tree_over_many_chunks_takes_no_memory_for_each() -> None:
    chunk = PIECE_LAYOUT.chunks(0, 1)[0]
    assert peak_bytes(lambda: file_hash(repeat(chunk, 5_000))) < 50_000


CLAIMED = [
    ("4 G segments", shard_header() + record(ONE, 1 << 31, 2**32 - 1, 0, 0)),
    ("4 G chunks", shard_header() + END + record(ONE, 0, 2**32 - 1, 0, 0)),
    ("as many as there are bytes", shard_header() + record(ONE, 0, 5000, 0, 0) + bytes(48 * 100)),
]


@pytest.mark.parametrize("body", [each[1] for each in CLAIMED], ids=[each[0] for each in CLAIMED])
def test_a_count_reserves_no_memory(body: bytes) -> None:
    def refuse() -> None:
        with pytest.raises(InvalidShard):
            parse(body)

    assert peak_bytes(refuse) < 100_000


def test_a_chunk_number_of_four_thousand_million_reads_nothing() -> None:
    part = Segment(ONE, 2**32 - 1, 0, 2**32 - 1)
    body = record(ONE, 1 << 31, 1, 0, 0) + record(part.xorb, 0, *part[1:]) + record(ONE, 0, 0, 0, 0)
    [file] = parse(make_shard([body], [])).files

    def refuse() -> None:
        with pytest.raises(InvalidShard, match="names the chunks"):
            verify_file(file, LAYOUTS)

    assert peak_bytes(refuse) < 100_000


def test_a_xorb_of_bombs_costs_one_of_them(decompressed: type[CountingDecompressor]) -> None:
    bomb = lz4.frame.compress(bytes(5_000_000))
    with pytest.raises(InvalidXorb, match="announces"):
        verify((header(len(bomb), 1, LARGEST_CHUNK) + bomb) * 100, ONE)
    assert decompressed.given == LARGEST_CHUNK + 1
