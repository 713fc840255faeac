"""Cutting: the same chunks as the public client's, and contents that come back from xorbs."""

import hashlib
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hublet.storage import chunker, contents
from hublet.storage.chunker import CutResult
from hublet.storage.gearhash import cut
from hublet.storage.object_store import LocalStore, blob_key, xorb_key
from hublet.storage.records import Content, Xorb
from hublet.storage.xet_hashes import Node, chunk_hash, file_hash, from_text, to_text
from hublet.storage.xorbs import LARGEST_CHUNK, SMALLEST_CHUNK, read_chunks, verify


def noise(size: int, seed: bytes = b"x") -> bytes:
    return hashlib.shake_256(seed).digest(size)


def text() -> bytes:
    return b"".join(b"line %d of a text\n" % number for number in range(200_000))


def floats() -> bytes:
    return b"".join(struct.pack("<f", number / 7) for number in range(500_000))


def in_pieces(content: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


# What `hf_xet.hash_files` of the public client, 1.8.0, says of these contents, and the number of
# chunks behind it.
HASHES_OF_THE_PUBLIC_CLIENT: list[tuple[str, Callable[[], bytes], str, int]] = [
    ("nothing", bytes, "0" * 64, 0),
    ("one byte", lambda: b"a",
     "49a7fffaf5f34109d4a191757f3e541e26437dcd1e0e83153454a503757856be", 1),
    ("a byte less than the smallest chunk", lambda: noise(8191),
     "2fd1cc56074e55a472bb78bb7cbe9294f2a5695a4f2c4b8bf77a8386e0ba4641", 1),
    ("the smallest chunk", lambda: noise(8192),
     "b06e8e1312fcb446a90679bf73ec0b719973dbbf4d26ef9ea0b4017153a79108", 1),
    ("a byte more than the smallest chunk", lambda: noise(8193),
     "49dd0caaed9766e32a6fc6c1d1c503635ec7e79ff0d40a13b93e2220f04106fa", 1),
    ("a byte less than the largest chunk", lambda: noise(131_071),
     "2aa6a2f251226931cde761f124bc8a1f701b8e87a5d5cb9e477d9ea17afb331f", 4),
    ("as much as the largest chunk", lambda: noise(131_072),
     "42b716e38ae7317150802d850024331037592b6245ccfdce03f31d2b3ca15a0d", 4),
    ("a byte more than the largest chunk", lambda: noise(131_073),
     "1fcfd894d5164fffa1ca36ee874d985d2273c7dda577f286ee6e73c59a691603", 4),
    ("zeros", lambda: bytes(1_000_000),
     "c0c85185f4307d40facfd366573176e54fc9c76041e44e32d52489780a6d1eaa", 8),
    ("text", text,
     "c2aea933a5348abeb28983b3962394f387c088fed3b63b05a981c76c6575d55e", 66),
    ("floats", floats,
     "ef6731017497093ab6f43d7e182d58c9d477a5c4ab9119db4892581c4b2f200d", 34),
    ("noise", lambda: noise(5_000_000),
     "5a84e2b536b3491e6316fce7a7c1071d70ed092f560c45d6470fbf0395600b39", 66),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "expected", "count"),
    [pytest.param(*each, id=name) for name, *each in HASHES_OF_THE_PUBLIC_CLIENT],
)
@pytest.mark.parametrize("piece", [70_001, 1 << 20, 1 << 30])
def test_contents_are_cut_where_the_public_client_cuts(
    make: Callable[[], bytes], expected: str, count: int, piece: int
) -> None:
    chunks = [Node(chunk_hash(each), len(each)) for each in cut(in_pieces(make(), piece))]
    assert len(chunks) == count
    assert to_text(file_hash(chunks)) == expected


@settings(max_examples=30)
@given(st.integers(0, 600_000), st.integers(1, 200_000), st.binary(min_size=1, max_size=8))
def test_every_content_comes_back_in_chunks_of_allowed_lengths(
    size: int, piece: int, seed: bytes
) -> None:
    # Parts of it repeat, as in real files.
    content = (noise(size // 3 + 1, seed) * 4)[:size]
    chunks = list(cut(in_pieces(content, piece)))
    assert b"".join(chunks) == content
    assert all(SMALLEST_CHUNK <= len(each) <= LARGEST_CHUNK for each in chunks[:-1])
    assert all(0 < len(each) <= LARGEST_CHUNK for each in chunks)


@settings(max_examples=5)
@given(st.integers(0, 8_000_000), st.binary(max_size=900), st.integers(0, 900))
def test_a_changed_copy_shares_more_than_95_percent(at: int, inserted: bytes, removed: int) -> None:
    content, chunks = _long_noise()
    changed = content[:at] + inserted + content[at + removed :]
    new = sum(len(each) for each in set(cut([changed])) - chunks)
    assert new < 0.05 * len(content)


@cache
def _long_noise() -> tuple[bytes, set[bytes]]:
    content = noise(8_000_000)
    return content, set(cut([content]))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def put(store: LocalStore, content: bytes) -> Content:
    with store.new_spool() as spool:
        spool.write(content)
        blob = contents.put_blob(store, spool)
    return Content(sha256=blob.sha256, size=blob.size)


def cut_all(store: LocalStore, *wanted: Content, known: tuple[Xorb, ...] = ()) -> CutResult:
    return chunker.pack(store, wanted, chunker.list_chunks(store, wanted), known)


def read_back(store: LocalStore, result: CutResult, at: int = 0) -> bytes:
    made = result.contents[at]
    content = Content(sha256=made.sha256, size=made.size, is_whole=False, segments=made.segments)
    return b"".join(contents.pieces(store, content, 0, made.size))


@pytest.mark.parametrize("make", [bytes, lambda: b"a", lambda: bytes(9_000_000), text, floats])
def test_a_cut_content_is_read_back_from_its_xorbs(
    store: LocalStore, make: Callable[[], bytes]
) -> None:
    content = make()
    result = cut_all(store, put(store, content))
    assert read_back(store, result) == content
    assert sum(segment.size for segment in result.contents[0].segments) == len(content)


def test_a_packed_xorb_is_one_that_the_hub_would_accept(store: LocalStore) -> None:
    content = noise(300_000) + text()[:300_000] + floats()[:300_000]
    [xorb] = cut_all(store, put(store, content)).xorbs
    data = store.local_path(xorb_key(xorb.name)).read_bytes()
    layout = verify(data, from_text(xorb.hash))
    assert (len(layout), layout.size) == (xorb.chunks, xorb.size)
    assert layout.stored_size == xorb.stored_size
    assert b"".join(read_chunks(data[: xorb.stored_size])) == content
    # Noise as it is, text compressed, numbers regrouped.
    assert xorb.stored_size < 0.75 * len(content)


def test_a_changed_copy_stores_only_what_is_new(store: LocalStore) -> None:
    content = noise(10_000_000)
    changed = content[:7_000_000] + b"inserted" + content[7_000_900:] + noise(9_000, b"end")
    first = cut_all(store, put(store, content))
    second = cut_all(store, put(store, changed), known=tuple(first.xorbs))
    assert read_back(store, second) == changed
    assert sum(xorb.stored_size for xorb in second.xorbs) < 0.04 * len(content)
    assert len(second.contents[0].segments) <= 4


def test_what_repeats_within_a_content_is_stored_once(store: LocalStore) -> None:
    content = noise(3_000_000) * 3
    result = cut_all(store, put(store, content))
    assert read_back(store, result) == content
    assert sum(xorb.size for xorb in result.xorbs) < 3_400_000


def test_a_content_of_repeated_chunks_does_not_fall_into_countless_segments(
    store: LocalStore,
) -> None:
    result = cut_all(store, put(store, bytes(160 * LARGEST_CHUNK)))
    assert len(result.contents[0].segments) < 150
    assert sum(xorb.stored_size for xorb in result.xorbs) < 100_000


def test_small_contents_share_a_xorb(store: LocalStore) -> None:
    smalls = [noise(900, bytes([number])) for number in range(20)]
    result = cut_all(store, *(put(store, each) for each in smalls))
    assert [read_back(store, result, at) for at in range(20)] == smalls
    [xorb] = result.xorbs
    assert xorb.chunks == 20


def test_a_xorb_ends_at_its_limits(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunker, "_LARGEST_XORB_CONTENT", 1_000_000)
    monkeypatch.setattr(chunker, "MOST_CHUNKS", 10)
    content = noise(3_000_000)
    result = cut_all(store, put(store, content))
    assert all(xorb.size <= 1_000_000 and xorb.chunks <= 10 for xorb in result.xorbs)
    assert read_back(store, result) == content


def test_the_chunks_that_clients_ask_for_are_told_with_their_segment(store: LocalStore) -> None:
    content = put(store, noise(200_000))
    [chunks] = chunker.list_chunks(store, [content])
    made = chunker.pack(store, [content], [chunks], ()).contents[0]
    assert made.queried_chunks[0] == (to_text(chunks[0].hash), 0)
    assert [chunk for chunk, _ in made.queried_chunks] == chunker.queried_chunks(chunks)


def test_a_content_whose_bytes_changed_on_the_disk_is_not_cut(store: LocalStore) -> None:
    content = Content(sha256="0" * 64, size=5)
    path = store.local_path(blob_key(content.sha256))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"other")
    with pytest.raises(ValueError, match="not what they were"):
        cut_all(store, content)


@pytest.mark.parametrize("is_fresh", [False, True])
def test_what_was_packed_is_compared_with_the_chunks_that_were_listed(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, *, is_fresh: bool
) -> None:
    content = put(store, noise(200_000))
    chunks = chunker.list_chunks(store, [content])
    monkeypatch.setattr(chunker, "compressed", lambda data: (0, bytes(len(data))))
    with pytest.raises(ValueError, match="not what they were"):
        chunker.pack(store, [content], chunks, (), is_fresh=is_fresh)


def test_chunks_that_are_stored_in_another_way_lie_beside_the_first(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = put(store, text()[:100_000])
    first = cut_all(store, content)
    monkeypatch.setattr(chunker, "compressed", lambda data: (0, data))
    second = cut_all(store, content)
    assert [xorb.hash for xorb in second.xorbs] == [xorb.hash for xorb in first.xorbs]
    assert second.xorbs != first.xorbs
    for result in (first, second):
        assert read_back(store, result) == text()[:100_000]


def test_the_same_form_is_stored_once(store: LocalStore) -> None:
    content = put(store, text()[:100_000])
    assert cut_all(store, content) == cut_all(store, content)
    assert len(list(store.list("xorbs"))) == 1
