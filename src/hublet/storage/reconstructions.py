"""Reconstructions of Xet: which bytes of which xorbs make up a range of a file."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hublet.core.dataclasses import dataclass
from hublet.storage.errors import RangeNotSatisfiable
from hublet.storage.shards import Segment
from hublet.storage.xet_hashes import to_text
from hublet.storage.xorbs import XorbLayout

# An address names all ranges that it is for, and must not become too long.
_RANGES_OF_ADDRESS = 32


class FetchRange(NamedTuple):
    """Run of chunks that is fetched at once, and where its bytes lie in the stored xorb.

    As everywhere in Python the ends are not included; the protocol includes the last byte.
    """

    start: int
    end: int
    first_byte: int
    end_byte: int


# Returns the address at which these ranges of a stored xorb can be fetched, by the name of its object.
AddressOf = Callable[[str, Sequence[FetchRange]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """Segments that cover a range of a file, and what to fetch of each of their xorbs.

    The first `skipped` bytes of the first segment lie before the range.
    """

    skipped: int
    segments: list[Segment]
    fetches: dict[bytes, list[FetchRange]]
    # The names of the objects, by the hashes of their xorbs.
    names: Mapping[bytes, str]


def reconstruct(
    segments: Sequence[Segment],
    layouts: Mapping[bytes, XorbLayout],
    names: Mapping[bytes, str],
    *,
    start: int,
    end: int,
) -> Reconstruction:
    """Find what makes up the bytes from start to before end, cut to whole chunks.

    The layouts are those of the objects with these names.

    Raise RangeNotSatisfiable where the range begins after the end of the file.
    """
    size = sum(segment.length for segment in segments)
    if start >= size and (start or size):
        raise RangeNotSatisfiable(size)
    touched: list[Segment] = []
    skipped = 0
    at = 0
    for segment in segments:
        first, at = at, at + segment.length
        if at <= start or first >= end:
            continue
        layout = layouts[segment.xorb]
        trimmed = _trim(segment, layout, start - first, end - first)
        if not touched:
            before = layout.length(segment.start, trimmed.start)
            skipped = max(start - first, 0) - before
        touched.append(trimmed)
    fetches = _fetches(touched, layouts)
    return Reconstruction(skipped=skipped, segments=touched, fetches=fetches, names=names)


def _trim(segment: Segment, layout: XorbLayout, start: int, end: int) -> Segment:
    """Leave out the chunks of a segment that lie wholly before start or after end."""
    base = layout.length(0, segment.start)
    first = max(segment.start, bisect_right(layout.ends, base + start))
    last = min(segment.end, bisect_left(layout.ends, base + end) + 1)
    return Segment(segment.xorb, layout.length(first, last), first, last)


def _fetches(
    segments: Iterable[Segment], layouts: Mapping[bytes, XorbLayout]
) -> dict[bytes, list[FetchRange]]:
    """Merge the chunk ranges of each xorb that touch or overlap; keep the others apart."""
    wanted: dict[bytes, list[tuple[int, int]]] = {}
    for segment in segments:
        wanted.setdefault(segment.xorb, []).append((segment.start, segment.end))
    return {
        xorb: [
            FetchRange(start, end, *layouts[xorb].stored_range(start, end))
            for start, end in _merged(ranges)
        ]
        for xorb, ranges in wanted.items()
    }


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def to_json_v2(found: Reconstruction, address: AddressOf) -> dict[str, Any]:
    """Return the response of `/v2/reconstructions`: some ranges of a xorb share an address."""
    xorbs = {
        to_text(xorb): [
            {
                "url": address(found.names[xorb], group),
                "ranges": [{"chunks": _chunks(each), "bytes": _bytes(each)} for each in group],
            }
            for group in _groups(ranges)
        ]
        for xorb, ranges in found.fetches.items()
    }
    return {**_terms(found), "xorbs": xorbs}


def to_json_v1(found: Reconstruction, address: AddressOf) -> dict[str, Any]:
    """Return the response of `/v1/reconstructions`: each range has an address of its own."""
    fetch_info = {
        to_text(xorb): [
            {
                "range": _chunks(each),
                "url": address(found.names[xorb], [each]),
                "url_range": _bytes(each),
            }
            for each in ranges
        ]
        for xorb, ranges in found.fetches.items()
    }
    return {**_terms(found), "fetch_info": fetch_info}


def _groups(ranges: Sequence[FetchRange]) -> Iterator[Sequence[FetchRange]]:
    for start in range(0, len(ranges), _RANGES_OF_ADDRESS):
        yield ranges[start : start + _RANGES_OF_ADDRESS]


def _terms(found: Reconstruction) -> dict[str, Any]:
    terms = [
        {
            "hash": to_text(segment.xorb),
            "unpacked_length": segment.length,
            "range": {"start": segment.start, "end": segment.end},
        }
        for segment in found.segments
    ]
    return {"offset_into_first_range": found.skipped, "terms": terms}


def _chunks(fetch: FetchRange) -> dict[str, int]:
    return {"start": fetch.start, "end": fetch.end}


def _bytes(fetch: FetchRange) -> dict[str, int]:
    """Return the bytes of a range as the protocol counts them: the last one included."""
    return {"start": fetch.first_byte, "end": fetch.end_byte - 1}
