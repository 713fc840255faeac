"""Xorbs: what a verified one says of its chunks, and what is refused before it costs anything."""

import lz4.block
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.core.errors import HubError
from hublet.storage import xorbs
from hublet.storage.errors import InvalidXorb
from hublet.storage.xet_hashes import chunk_hash
from hublet.storage.xorbs import XorbLayout, footer_size, read_chunks, verify
from storage.xet_content import header, make_xorb, stored_chunk

CONTENTS = [bytes(range(256)) * 40, b"text " * 3000, b"\x00" * 9001]


@pytest.mark.parametrize("scheme", [0, 1, 2])
def test_a_verified_xorb_says_where_its_chunks_lie(scheme: int) -> None:
    digest, data = make_xorb(CONTENTS, scheme)
    layout = verify(data, digest)
    assert len(layout) == 3
    assert layout.hash == digest
    assert layout.size == sum(len(content) for content in CONTENTS)
    assert layout.stored_size == len(data)
    assert [node.hash for node in layout.chunks(0, 3)] == [chunk_hash(each) for each in CONTENTS]
    start, end = layout.stored_range(1, 3)
    assert list(read_chunks(data[start:end])) == CONTENTS[1:]


def test_schemes_mix_in_one_xorb() -> None:
    digest, _ = make_xorb(CONTENTS)
    mixed = b"".join(stored_chunk(each, scheme) for scheme, each in enumerate(CONTENTS))
    assert verify(mixed, digest).size == sum(len(content) for content in CONTENTS)
    assert list(read_chunks(mixed)) == CONTENTS


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8193])
def test_regrouped_chunks_of_every_length_come_back(length: int) -> None:
    content = bytes(at % 251 for at in range(length))
    assert list(read_chunks(stored_chunk(content, 2))) == [content]


def test_a_footer_has_the_layout() -> None:
    digest, data = make_xorb(CONTENTS, 1)
    layout = verify(data, digest)
    footer = layout.footer()
    assert len(footer) == footer_size(3) == 92 + 3 * 40 + 4
    assert XorbLayout.read_footer(footer, count=3) == layout
    assert verify(data + footer, digest) == layout


def test_a_footer_is_not_part_of_the_layout() -> None:
    digest, data = make_xorb(CONTENTS)
    assert verify(data + b"XETBLOB\x01" + bytes(100), digest).stored_size == len(data)


DIGEST, XORB = make_xorb(CONTENTS)
BOMB = lz4.frame.compress(bytes(50_000_000))

REFUSED = [
    ("nothing", b"", "at least one chunk"),
    ("a flipped byte", XORB[:100] + b"\xee" + XORB[101:], "has the hash"),
    ("another xorb", make_xorb(CONTENTS[:2])[1], "has the hash"),
    ("an end within a header", XORB + b"\x00\x01", "within the header"),
    ("an end within a chunk", XORB[:-1], "ends within the chunk"),
    ("junk at the end", XORB + b"junk and more", "version 106"),
    ("another version", header(1, 0, 1, version=1) + b"a", "version 1"),
    ("an empty chunk", header(0, 0, 0), "1 to 131072"),
    ("a chunk too long", header(131073, 0, 131073) + bytes(131073), "1 to 131072"),
    ("a compressed length too long", header(300_000, 1, 9000) + bytes(300_000), "impossible"),
    ("two lengths of plain bytes", header(2, 0, 3) + b"ab", "as long as its content"),
    ("another scheme", header(1, 99, 1) + b"a", "scheme 99"),
    ("what is no frame", header(9, 1, 9) + b"not a lz4", "LZ4 frame"),
    (
        "a frame too short",
        stored_chunk(b"a" * 99, 1).replace(b"c\x00\x00", b"d\x00\x00", 1),
        "announces",
    ),
    ("a bomb", header(len(BOMB), 1, 131072) + BOMB, "announces"),
]


@pytest.mark.parametrize(
    ("data", "sentence"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED]
)
def test_hostile_xorbs_are_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(InvalidXorb, match=sentence):
        verify(data, DIGEST)


def test_bytes_after_a_frame_are_refused() -> None:
    frame = stored_chunk(b"a" * 99, 1)[8:] + b"more"
    with pytest.raises(InvalidXorb, match="announces"):
        verify(header(len(frame), 1, 99) + frame, DIGEST)


def _frame(block_size: int, content: bytes) -> bytes:
    """Return a frame as clients write it, with one block whatever its header allows."""
    # A frame of little content has smaller blocks than it could have.
    long = bytes(2_000_000)
    head = lz4.frame.compress(long, block_size=block_size, block_linked=False, store_size=False)[:7]
    block = lz4.block.compress(content, store_size=False)
    return head + len(block).to_bytes(4, "little") + block + bytes(4)


FRAMES = [
    pytest.param(lz4.frame.BLOCKSIZE_MAX64KB, 65_536, id="64 KiB"),
    pytest.param(lz4.frame.BLOCKSIZE_MAX256KB, 131_072, id="256 KiB"),
]


@pytest.mark.parametrize(("block_size", "length"), FRAMES)
def test_frames_of_one_block_are_read_without_a_frame_decompressor(
    monkeypatch: pytest.MonkeyPatch, block_size: int, length: int
) -> None:
    monkeypatch.setattr(xorbs, "LZ4FrameDecompressor", None)
    frame = _frame(block_size, content := b"shovel " * (length // 7) + b"." * (length % 7))

    assert list(read_chunks(header(len(frame), 1, length) + frame)) == [content]


@pytest.mark.parametrize("length", [9_999, 10_001])
@pytest.mark.parametrize("block_size", [lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX1MB])
def test_a_block_of_another_length_is_refused(block_size: int, length: int) -> None:
    frame = _frame(block_size, b"a" * 10_000)
    with pytest.raises(InvalidXorb):
        verify(header(len(frame), 1, length) + frame, DIGEST)


def test_a_block_longer_than_its_frame_allows_is_refused() -> None:
    """Clients could not read it."""
    frame = _frame(lz4.frame.BLOCKSIZE_MAX64KB, b"a" * 65_537)
    with pytest.raises(InvalidXorb, match="LZ4 frame"):
        verify(header(len(frame), 1, 65_537) + frame, DIGEST)


def test_too_many_chunks_are_refused_before_the_rest_is_read() -> None:
    with pytest.raises(InvalidXorb, match="at most 8192 chunks"):
        verify(stored_chunk(b"a") * 9000 + b"never read", DIGEST)


def test_a_bomb_is_not_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Watched:
        eof = False
        unused_data = b""

        def decompress(self, data: memoryview, most: int) -> bytes:
            asked.append(most)
            return bytes(most)

    monkeypatch.setattr(xorbs, "LZ4FrameDecompressor", Watched)
    with pytest.raises(InvalidXorb, match="announces"):
        verify(header(4, 1, 1000) + b"bomb", DIGEST)
    assert asked == [1001]


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    with pytest.raises(HubError):
        verify(data, DIGEST)


@given(st.data())
def test_no_change_of_a_xorb_goes_unnoticed(data: st.DataObject) -> None:
    digest, good = make_xorb([b"one" * 50, b"two" * 70], data.draw(st.sampled_from([0, 1, 2])))
    at = data.draw(st.integers(0, len(good) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    changed = good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :]
    try:
        layout = verify(changed, digest)
    except InvalidXorb:
        return
    # Only what does not matter for the content may differ, as a flag in the frame of a chunk.
    assert b"".join(read_chunks(changed)) == b"one" * 50 + b"two" * 70
    assert layout.hash == digest
