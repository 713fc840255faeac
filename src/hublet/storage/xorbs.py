"""Xorbs of Xet: up to 64 MiB of chunks in one object, each behind a header of eight bytes.

`verify` reads a whole xorb and trusts nothing in it: lengths are bounded before anything is
decompressed, and every hash is computed anew. It takes the processor for up to half a second, so call
it in a worker process.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import lz4.block
import lz4.frame
from blake3 import blake3
from lz4.frame import LZ4FrameDecompressor

from hublet.core.dataclasses import dataclass
from hublet.storage.errors import InvalidXorb
from hublet.storage.xet_hashes import HASH_BYTES, Node, chunk_hash, range_hash, to_text, xorb_hash

# Clients cut no shorter chunks, but for the last of a file.
SMALLEST_CHUNK = 8 * 1024
LARGEST_CHUNK = 128 * 1024
MOST_CHUNKS = 8192
# The client cuts xorbs at 64 MiB of content; the headers come on top.
LARGEST_XORB = 64 * 1024 * 1024 + 8 * MOST_CHUNKS

# Of a chunk: its version, three bytes for the stored length, the scheme, three for the length.
_CHUNK_HEADER = struct.Struct("<2I")
_HEADER_BYTES = _CHUNK_HEADER.size
_FOOTER_TAG = b"XETBLOB"
_HASHES_TAG = b"XBLBHSH\x00"
_ENDS_TAG = b"XBLBBND\x01"
# The number of chunks, and how far before the end the two sections begin.
_FOOTER_TAIL = struct.Struct("<3I16s")
_FOOTER_BYTES = 96
_FOOTER_BYTES_PER_CHUNK = 40
_PLAIN, _COMPRESSED, _REGROUPED = 0, 1, 2
# The headers of LZ4 frames that clients write, each with how much a block holds at the most: blocks
# that know nothing of each other, no checksums, no length of the content.
_LARGEST_BLOCK = {
    bytes.fromhex("04224d18604082"): 64 * 1024,
    bytes.fromhex("04224d186050fb"): 256 * 1024,
}
_FRAME_HEADER_BYTES = 7
_FRAME_END = bytes(4)
_GROUPS = 4
# So much of a chunk shows whether it is better regrouped.
_SAMPLE_BYTES = 8 * 1024
_FORM_BYTES = 16

Buffer = bytes | bytearray | memoryview


class _Header(NamedTuple):
    stored: int
    scheme: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class XorbLayout:
    """Where the chunks of a verified xorb lie: their hashes, joined, and for each where it ends.

    Its own hash is kept, because it takes longer to compute than all the rest.

    `stored_ends` counts in the stored xorb, headers included, `ends` in its content.
    """

    hash: bytes
    hashes: bytes
    stored_ends: "array[int]"
    ends: "array[int]"

    @classmethod
    def of_chunks(
        cls, hashes: bytes, *, stored_ends: "array[int]", ends: "array[int]"
    ) -> "XorbLayout":
        """Return the layout of these chunks; the hash of the xorb follows from them."""
        layout = cls(hash=b"", hashes=hashes, stored_ends=stored_ends, ends=ends)
        return replace(layout, hash=xorb_hash(layout.chunks(0, len(ends))))

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def size(self) -> int:
        return self.ends[-1]

    @property
    def stored_size(self) -> int:
        return self.stored_ends[-1]

    def chunks(self, start: int, end: int) -> list[Node]:
        return [Node(self.chunk(at), self.length(at, at + 1)) for at in range(start, end)]

    def chunk(self, at: int) -> bytes:
        return self.hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES]

    def length(self, start: int, end: int) -> int:
        """Return how many bytes of content the chunks from start to before end hold."""
        return _before(self.ends, end) - _before(self.ends, start)

    def stored_range(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the stored xorb these chunks begin and end."""
        return _before(self.stored_ends, start), _before(self.stored_ends, end)

    def range_hash(self, start: int, end: int) -> bytes:
        return range_hash(self.hashes[start * HASH_BYTES : end * HASH_BYTES])

    def footer(self) -> bytes:
        """Return the footer that the hub keeps behind the chunks of a stored xorb: this layout."""
        count = len(self)
        hashes = _HASHES_TAG + struct.pack("<I", count) + self.hashes
        ends = _ENDS_TAG + struct.pack("<I", count)
        ends += _little(self.stored_ends) + _little(self.ends)
        tail = len(ends) + _FOOTER_TAIL.size
        footer = _FOOTER_TAG + b"\x01" + self.hash + hashes + ends
        footer += _FOOTER_TAIL.pack(count, tail + len(hashes), tail, bytes(16))
        return footer + struct.pack("<I", len(footer))

    @classmethod
    def read_footer(cls, footer: bytes, *, count: int) -> "XorbLayout":
        """Read a footer that this hub wrote, of a xorb with so many chunks."""
        hash_end = len(_FOOTER_TAG) + 1 + HASH_BYTES
        start = hash_end + len(_HASHES_TAG) + 4
        hashes_end = start + count * HASH_BYTES
        ends = hashes_end + len(_ENDS_TAG) + 4
        return cls(
            hash=footer[hash_end - HASH_BYTES : hash_end],
            hashes=footer[start:hashes_end],
            stored_ends=_numbers(footer[ends : ends + 4 * count]),
            ends=_numbers(footer[ends + 4 * count : ends + 8 * count]),
        )


def footer_size(count: int) -> int:
    """Return how many bytes the footer of a xorb with so many chunks has."""
    return _FOOTER_BYTES + _FOOTER_BYTES_PER_CHUNK * count


def verify(data: Buffer, expected: bytes) -> XorbLayout:
    """Check every chunk of an uploaded xorb and its name; return its layout.

    Whatever follows the chunks as a footer is not part of the layout, and need not be kept.
    """
    layout = _layout(memoryview(data))
    if layout.hash != expected:
        raise InvalidXorb(
            f"The xorb's content has the hash {to_text(layout.hash)}, not {to_text(expected)}."
        )
    return layout


def form_of(stored: Buffer) -> str:
    """Return a digest of a xorb as it is stored: its hash says nothing of how it is compressed."""
    return blake3(stored).hexdigest(length=_FORM_BYTES)


def read_chunks(data: Buffer) -> Iterator[Buffer]:
    """Yield the content of the chunks in a piece of a stored xorb that holds whole chunks.

    It is not copied where it need not be: use it before `data` changes.
    """
    view = memoryview(data)
    at = 0
    while at < len(view):
        header = _header(view, at)
        at += _HEADER_BYTES
        yield _content(view[at : at + header.stored], header)
        at += header.stored


def read_stream(pieces: Iterable[bytes], start: int, end: int) -> Iterator[Buffer]:
    """Yield the content from start to before end of whole chunks that arrive in any pieces.

    Chunks that lie before it are not decompressed, and those that are not compressed not copied.
    """
    waiting = b""
    at = 0
    for piece in pieces:
        waiting += piece
        used = 0
        while (header := _complete_header(waiting, used)) is not None:
            data = used + _HEADER_BYTES
            used = data + header.stored
            first, at = at, at + header.length
            if at > start:
                content = _content(memoryview(waiting)[data:used], header)
                yield memoryview(content)[max(start - first, 0) : end - first]
            if at >= end:
                return
        waiting = waiting[used:]


def _complete_header(data: bytes, at: int) -> _Header | None:
    """Read the header of a chunk; None unless all of the chunk is there."""
    if len(data) - at < _HEADER_BYTES:
        return None
    stored = int.from_bytes(data[at + 1 : at + 4], "little")
    if len(data) - at < _HEADER_BYTES + stored:
        return None
    return _header(memoryview(data), at)


def chunk_header(scheme: int, *, stored: int, length: int) -> bytes:
    """Return what stands before the bytes of a chunk."""
    return b"".join(
        (b"\x00", stored.to_bytes(3, "little"), bytes([scheme]), length.to_bytes(3, "little"))
    )


def compressed(content: bytes) -> tuple[int, bytes]:
    """Return a chunk as it is stored: the scheme that promises the least, and the bytes."""
    sample = content[:_SAMPLE_BYTES]
    grouped = len(_frame(_grouped(sample))) < len(_frame(sample))
    stored = _frame(_grouped(content) if grouped else content)
    if len(stored) >= len(content):
        return _PLAIN, content
    return _REGROUPED if grouped else _COMPRESSED, stored


def _frame(data: bytes) -> bytes:
    frame: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX256KB, block_linked=False, store_size=False
    )
    return frame


def _grouped(content: bytes) -> bytes:
    return b"".join(content[group::_GROUPS] for group in range(_GROUPS))


def _layout(view: memoryview) -> XorbLayout:
    hashes = bytearray()
    stored_ends, ends = array("I"), array("I")
    at = size = 0
    while at < len(view) and view[at : at + len(_FOOTER_TAG)] != _FOOTER_TAG:
        header = _header(view, at)
        at += _HEADER_BYTES
        hashes += chunk_hash(_content(view[at : at + header.stored], header))
        at += header.stored
        size += header.length
        stored_ends.append(at)
        ends.append(size)
        if len(ends) > MOST_CHUNKS:
            raise InvalidXorb(f"A xorb has at most {MOST_CHUNKS} chunks.")
    if not ends:
        raise InvalidXorb("A xorb has at least one chunk.")
    return XorbLayout.of_chunks(bytes(hashes), stored_ends=stored_ends, ends=ends)


def _header(view: memoryview, at: int) -> _Header:
    """Read the header of a chunk; raise InvalidXorb unless it and what it announces are possible."""
    if len(view) - at < _HEADER_BYTES:
        raise InvalidXorb(f"The xorb ends within the header of a chunk, at byte {at}.")
    first, second = _CHUNK_HEADER.unpack_from(view, at)
    if first & 0xFF:
        raise InvalidXorb(
            f"The chunk at byte {at} has the version {first & 0xFF}; only 0 is known."
        )
    header = _Header(stored=first >> 8, scheme=second & 0xFF, length=second >> 8)
    if not 1 <= header.length <= LARGEST_CHUNK:
        raise InvalidXorb(f"The chunk at byte {at} must have 1 to {LARGEST_CHUNK} bytes.")
    if not 1 <= header.stored <= 2 * LARGEST_CHUNK:
        raise InvalidXorb(f"The chunk at byte {at} has an impossible compressed length.")
    if header.stored > len(view) - at - _HEADER_BYTES:
        raise InvalidXorb(f"The xorb ends within the chunk at byte {at}.")
    return header


def _content(stored: memoryview, header: _Header) -> Buffer:
    if header.scheme == _PLAIN:
        if header.stored != header.length:
            raise InvalidXorb("An uncompressed chunk must be as long as its content.")
        return stored
    if header.scheme == _COMPRESSED:
        return _decompressed(stored, header.length)
    if header.scheme == _REGROUPED:
        return _ungrouped(_decompressed(stored, header.length))
    raise InvalidXorb(f"The compression scheme {header.scheme} is not known; 0, 1 and 2 are.")


def _decompressed(stored: memoryview, length: int) -> bytes:
    """Decompress one LZ4 frame, and no more of it than one byte too many."""
    block = _only_block(stored, length)
    if block is None:
        return _decompressed_frame(stored, length)
    try:
        content: bytes = lz4.block.decompress(block, uncompressed_size=length)
    except lz4.block.LZ4BlockError:
        raise InvalidXorb("A chunk is not a valid LZ4 frame.") from None
    if len(content) != length:
        raise InvalidXorb(f"A chunk does not hold the {length} bytes that its header announces.")
    return content


def _only_block(stored: memoryview, length: int) -> memoryview | None:
    """Return the only block of a frame as clients write it; None for any other frame.

    It is decompressed in half the time that a frame takes.
    """
    largest = _LARGEST_BLOCK.get(bytes(stored[:_FRAME_HEADER_BYTES]), 0)
    start = _FRAME_HEADER_BYTES + 4
    end = start + int.from_bytes(stored[_FRAME_HEADER_BYTES:start], "little")
    is_only = length <= largest and stored[end:] == _FRAME_END
    return stored[start:end] if is_only else None


def _decompressed_frame(stored: memoryview, length: int) -> bytes:
    frame = LZ4FrameDecompressor()
    try:
        content: bytes = frame.decompress(stored, length + 1)
    except RuntimeError:
        raise InvalidXorb("A chunk is not a valid LZ4 frame.") from None
    if len(content) != length or not frame.eof or frame.unused_data:
        raise InvalidXorb(f"A chunk does not hold the {length} bytes that its header announces.")
    return content


def _ungrouped(grouped: bytes) -> bytearray:
    """Undo the regrouping: first came every fourth byte, then every fourth from the second on, …"""
    content = bytearray(len(grouped))
    at = 0
    for group in range(_GROUPS):
        length = len(range(group, len(grouped), _GROUPS))
        content[group::_GROUPS] = grouped[at : at + length]
        at += length
    return content


def _before(ends: "array[int]", at: int) -> int:
    return ends[at - 1] if at else 0


def _little(numbers: "array[int]") -> bytes:
    return _swapped(numbers).tobytes()


def _numbers(data: bytes) -> "array[int]":
    return _swapped(array("I", data))


def _swapped(numbers: "array[int]") -> "array[int]":
    """Turn numbers of this machine into little-endian ones, or back."""
    if sys.byteorder == "little":
        return numbers
    swapped = array("I", numbers)
    swapped.byteswap()
    return swapped
