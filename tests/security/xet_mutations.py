"""Bodies that were changed on purpose: bits flipped, parts cut, doubled and put in, counts changed."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from storage.xet_content import END, header, record, shard_header, stored_chunk

# Numbers at the edges of what fits, and of what is allowed.
EDGES = [0, 1, 2, 3, 7, 8, 9, 255, 256, 8192, 8193, 131071, 131072, 131073, 262144, 262145]
EDGES_24 = [*EDGES, 2**24 - 1]
EDGES_32 = [*EDGES, 2**24, 2**31 - 1, 2**31, 2**32 - 1]


def _flipped(body: bytes, at: int, number: int) -> bytes:
    return body[:at] + bytes(byte ^ 1 << number % 8 for byte in body[at : at + 1]) + body[at + 1 :]


def _truncated(body: bytes, at: int, _number: int) -> bytes:
    return body[:at]


def _inserted(body: bytes, at: int, number: int) -> bytes:
    return body[:at] + bytes([number % 256]) * (number % 7 + 1) + body[at:]


def _cut(body: bytes, at: int, number: int) -> bytes:
    return body[:at] + body[at + number % 100 + 1 :]


def _doubled(body: bytes, at: int, number: int) -> bytes:
    """Repeat a part: for shards some whole records."""
    length = (8, 48, 96, 144)[number % 4]
    at -= at % min(length, 48)
    return body[: at + length] + body[at : at + length] + body[at + length :]


def _counted_24(body: bytes, at: int, number: int) -> bytes:
    return body[:at] + EDGES_24[number % len(EDGES_24)].to_bytes(3, "little") + body[at + 3 :]


def _counted_32(body: bytes, at: int, number: int) -> bytes:
    at -= at % 4
    return body[:at] + EDGES_32[number % len(EDGES_32)].to_bytes(4, "little") + body[at + 4 :]


_CHANGES = [_flipped, _truncated, _inserted, _cut, _doubled, _counted_24, _counted_32]
_PLANS = st.lists(
    st.tuples(st.sampled_from(_CHANGES), st.integers(0, 2**16), st.integers(0, 2**16)),
    min_size=1,
    max_size=4,
)


@st.composite
def changed(draw: DrawFn, bodies: Sequence[bytes]) -> bytes:
    """Return one of the bodies with up to four changes anywhere in it."""
    body = draw(st.sampled_from(bodies))
    for change, at, number in draw(_PLANS):
        body = change(body, at % max(len(body), 1), number)
    return body


def _almost_chunk(content: bytes, scheme: int, more: bytes, *, length: int, stored: int) -> bytes:
    """Return a chunk whose data has bytes too many, and whose header is wrong by so much."""
    data = stored_chunk(content, scheme)[8:] + more
    return header(max(len(data) + stored, 0), scheme, max(len(content) + length, 0)) + data


def nonsense_xorbs() -> SearchStrategy[bytes]:
    """Return chunks that are nearly right, headers of any numbers, and any bytes between them."""
    numbers = st.sampled_from(EDGES_24)
    off = st.integers(-1, 1)
    headers = st.builds(header, numbers, st.sampled_from([0, 1, 2, 3, 99]), numbers)
    chunks = st.builds(
        _almost_chunk,
        st.binary(max_size=80),
        st.integers(0, 2),
        st.sampled_from([b"", b"", b"m"]),
        length=off,
        stored=off,
    )
    return st.lists(chunks | chunks | headers | st.binary(max_size=9), min_size=1, max_size=3).map(
        b"".join
    )


def nonsense_shards(xorbs: Sequence[bytes]) -> SearchStrategy[bytes]:
    """Return shards of records of any numbers, which name these xorbs and others."""
    numbers = st.sampled_from([*EDGES_32, 0, 1, 2, 3])
    names = st.sampled_from([*xorbs, b"n" * 32])
    records = st.builds(record, names, *[numbers] * 4) | st.just(END)
    return st.lists(records, max_size=12).map(lambda parts: shard_header() + b"".join(parts) + END)
