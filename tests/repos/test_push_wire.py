"""Git's packets, and bodies that arrive in pieces."""

import gzip
from collections.abc import AsyncIterator

import pytest

from hublet.repos.errors import MalformedRequest, RequestTooLarge
from hublet.repos.push import wire
from hublet.repos.push.commands import MOST_COMMANDS, RefCommand, advertisement, read_push
from hublet.repos.push.wire import PacketReader, on_band, packet

OLD, NEW = "1" * 40, "2" * 40


async def in_pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def joined(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_packets_are_read_however_they_are_cut(size: int) -> None:
    packets = PacketReader(in_pieces(b"0007one0004" + b"0007two0000PACK and more", size))

    read = [await packets.read() for _ in range(4)]
    peeked = await packets.peek(4)

    assert read == [b"one", b"", b"two", None]
    assert peeked == b"PACK"
    assert await joined(packets.rest()) == b"PACK and more"


async def test_looking_ahead_at_the_end_gives_what_is_left() -> None:
    packets = PacketReader(in_pieces(b"PA", 1))

    assert await packets.peek(4) == b"PA"
    assert await joined(packets.rest()) == b"PA"


@pytest.mark.parametrize(
    ("data", "framed"),
    [
        pytest.param(b"", b"0004", id="nothing"),
        pytest.param(b"hello", b"0009hello", id="a word"),
        pytest.param(b"x" * 65516, b"fff0" + b"x" * 65516, id="as much as one holds"),
    ],
)
def test_a_packet_begins_with_its_length(data: bytes, framed: bytes) -> None:
    assert packet(data) == framed


def test_a_band_is_cut_into_packets() -> None:
    banded = on_band(1, b"x" * 65516)

    assert banded == b"fff0\x01" + b"x" * 65515 + b"0006\x01x"


async def test_a_push_names_its_refs_and_what_the_client_can_do() -> None:
    body = (
        packet(f"{OLD} {NEW} refs/heads/main\0 report-status atomic agent=git/2".encode())
        + packet(f"{'0' * 40} {NEW} refs/tags/a b\n".encode())
        + packet(f"{OLD} {'0' * 40} refs/heads/x".encode())
        + b"0000"
    )

    push = await read_push(PacketReader(in_pieces(body, 10)))

    assert push.commands == (
        RefCommand(ref="refs/heads/main", old_sha=OLD, new_sha=NEW),
        RefCommand(ref="refs/tags/a b", old_sha=None, new_sha=NEW),
        RefCommand(ref="refs/heads/x", old_sha=OLD, new_sha=None),
    )
    assert push.capabilities == {"report-status", "atomic", "agent=git/2"}
    assert push.is_atomic


async def test_a_push_of_too_many_refs_is_refused() -> None:
    line = packet(f"{OLD} {NEW} refs/heads/x".encode())
    packets = PacketReader(in_pieces(line * (MOST_COMMANDS + 1), 1 << 16))

    with pytest.raises(MalformedRequest, match="it moves at most 10000 refs"):
        await read_push(packets)


def test_a_repository_without_refs_still_says_what_it_can_do() -> None:
    published = advertisement({})

    assert published.startswith(b"001f# service=git-receive-pack\n0000")
    assert f"{'0' * 40} capabilities^{{}}\0report-status delete-refs ".encode() in published


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
async def test_gzip_is_unpacked_however_it_is_cut(size: int, encoding: str) -> None:
    data = b"".join(b"%d\n" % number for number in range(5000))

    assert await joined(wire.decompress(in_pieces(gzip.compress(data), size), encoding)) == data


@pytest.mark.parametrize("encoding", [None, "", "identity"])
async def test_what_is_not_packed_is_left_alone(encoding: str | None) -> None:
    assert await joined(wire.decompress(in_pieces(b"hello", 2), encoding)) == b"hello"


async def test_a_small_body_that_unpacks_to_a_huge_one_comes_in_small_pieces() -> None:
    bomb = gzip.compress(bytes(10 << 20))

    pieces = [piece async for piece in wire.decompress(in_pieces(bomb, 1 << 20), "gzip")]

    assert sum(map(len, pieces)) == 10 << 20
    assert max(map(len, pieces)) == 1 << 16


@pytest.mark.parametrize(
    ("data", "encoding", "rule"),
    [
        pytest.param(b"hello", "br", "its Content-Encoding is gzip or none", id="not gzip"),
        pytest.param(b"hello", "gzip", "is not the gzip data it claims to be", id="no gzip data"),
        pytest.param(
            gzip.compress(b"hello")[:-4], "gzip", "its gzip data ends too early", id="cut short"
        ),
        pytest.param(b"", "gzip", "its gzip data ends too early", id="nothing"),
    ],
)
async def test_what_cannot_be_unpacked_is_refused(data: bytes, encoding: str, rule: str) -> None:
    with pytest.raises(MalformedRequest, match=rule):
        await joined(wire.decompress(in_pieces(data, 10), encoding))


async def test_a_body_is_held_to_its_limit() -> None:
    assert await joined(wire.limit_size(in_pieces(b"12345", 2), largest=5)) == b"12345"
    with pytest.raises(RequestTooLarge, match="at most 4 bytes"):
        await joined(wire.limit_size(in_pieces(b"12345", 2), largest=4))


async def test_a_body_is_kept_in_a_file() -> None:
    with await wire.spool_body(in_pieces(b"12345", 2)) as file:
        assert file.read() == b"12345"
