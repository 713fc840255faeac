"""Reconstructions: the terms and ranges of any part of a file give exactly its bytes."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.storage.errors import RangeNotSatisfiable
from hublet.storage.reconstructions import (
    FetchRange,
    Reconstruction,
    reconstruct,
    to_json_v1,
    to_json_v2,
)
from hublet.storage.shards import Segment
from hublet.storage.xet_hashes import to_text
from hublet.storage.xorbs import read_chunks, verify
from storage.xet_content import make_xorb

FIRST = [bytes([65 + at]) * (10 + at) for at in range(9)]
SECOND = [bytes([97 + at]) * (20 - at) for at in range(7)]
XORBS = dict(make_xorb(each, scheme) for each, scheme in ((FIRST, 0), (SECOND, 1)))
LAYOUTS = {digest: verify(data, digest) for digest, data in XORBS.items()}
ONE, TWO = XORBS


def segment(xorb: bytes, start: int, end: int) -> Segment:
    return Segment(xorb, LAYOUTS[xorb].length(start, end), start, end)


NAMES = {xorb: f"{to_text(xorb)}-form" for xorb in LAYOUTS}
SEGMENTS = [segment(ONE, 0, 5), segment(TWO, 2, 7), segment(ONE, 3, 9), segment(TWO, 0, 1)]
CONTENT = b"".join(
    b"".join((FIRST if each.xorb == ONE else SECOND)[each.start : each.end]) for each in SEGMENTS
)


def address(xorb: str, ranges: Sequence[FetchRange]) -> str:
    assert xorb in NAMES.values()
    return f"{len(ranges)} of data"


def read(found: Reconstruction, length: int) -> bytes:
    """Do what a client does: fetch the ranges, take each term's chunks, cut both ends."""
    content = b""
    for each in found.segments:
        [fetch] = [
            fetch
            for fetch in found.fetches[each.xorb]
            if fetch.start <= each.start and each.end <= fetch.end
        ]
        stored = XORBS[each.xorb][fetch.first_byte : fetch.end_byte]
        chunks = list(read_chunks(stored))[each.start - fetch.start : each.end - fetch.start]
        assert sum(len(chunk) for chunk in chunks) == each.length
        content += b"".join(chunks)
    return content[found.skipped : found.skipped + length]


def test_a_whole_file_is_all_its_segments() -> None:
    found = reconstruct(SEGMENTS, LAYOUTS, NAMES, start=0, end=len(CONTENT))
    assert found.segments == SEGMENTS
    assert found.skipped == 0
    assert [(each.start, each.end) for each in found.fetches[ONE]] == [(0, 9)]
    assert [(each.start, each.end) for each in found.fetches[TWO]] == [(0, 1), (2, 7)]
    assert read(found, len(CONTENT)) == CONTENT


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, len(CONTENT) + 50))
def test_every_range_gives_its_bytes_and_no_chunk_too_many(start: int, length: int) -> None:
    found = reconstruct(SEGMENTS, LAYOUTS, NAMES, start=start, end=start + length)
    assert read(found, length) == CONTENT[start : start + length]
    first, last = found.segments[0], found.segments[-1]
    assert found.skipped < LAYOUTS[first.xorb].length(first.start, first.start + 1)
    surplus = sum(each.length for each in found.segments) - found.skipped - length
    assert surplus < LAYOUTS[last.xorb].length(last.end - 1, last.end)


def test_a_range_after_the_end_cannot_be_satisfied() -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        reconstruct(SEGMENTS, LAYOUTS, NAMES, start=len(CONTENT), end=len(CONTENT) + 1)
    assert refused.value.headers == {"Content-Range": f"bytes */{len(CONTENT)}"}


def test_an_empty_file_has_no_terms() -> None:
    found = reconstruct([], {}, {}, start=0, end=0)
    assert to_json_v2(found, address) == {"offset_into_first_range": 0, "terms": [], "xorbs": {}}


def test_the_protocol_includes_the_last_byte_and_not_the_last_chunk() -> None:
    found = reconstruct(SEGMENTS[:1], LAYOUTS, NAMES, start=12, end=30)
    shared: dict[str, Any] = {
        "offset_into_first_range": 2,
        "terms": [{"hash": to_text(ONE), "unpacked_length": 23, "range": {"start": 1, "end": 3}}],
    }
    chunks, stored = {"start": 1, "end": 3}, {"start": 18, "end": 56}
    assert to_json_v2(found, address) == shared | {
        "xorbs": {
            to_text(ONE): [{"url": "1 of data", "ranges": [{"chunks": chunks, "bytes": stored}]}]
        }
    }
    assert to_json_v1(found, address) == shared | {
        "fetch_info": {to_text(ONE): [{"range": chunks, "url": "1 of data", "url_range": stored}]}
    }
