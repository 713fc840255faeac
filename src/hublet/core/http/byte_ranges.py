"""Responses with one or several ranges of an object, as `206` or `multipart/byteranges`."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from starlette.responses import Response, StreamingResponse

from hublet.core.errors import InvalidRequest
from hublet.core.http.conditional_requests import ByteRange, RangeNotSatisfiable
from hublet.core.http.file_responses import FilePartResponse

BINARY = "application/octet-stream"

_RANGES = re.compile(r"bytes=(\d{1,15}-\d{1,15}(?:\s*,\s*\d{1,15}-\d{1,15})*)")
_BOUNDARY = "hublet-0b9d0f1b62f84c8a"

# Returns the bytes of a range, piece by piece; it may block.
ReadRange = Callable[[ByteRange], Iterator[bytes]]


def parse_ranges(header: str | None, *, most: int) -> list[ByteRange]:
    """Return the ranges that a header asks for; each must have both ends."""
    match = _RANGES.fullmatch(header.strip()) if header is not None else None
    if match is None:
        raise InvalidRequest("Range must name ranges with both ends, as in bytes=0-99,200-299.")
    parts = [part.partition("-") for part in match[1].split(",")]
    if len(parts) > most:
        raise InvalidRequest(f"Range must name at most {most} ranges.")
    ranges = [ByteRange(int(first), int(last) + 1) for first, _, last in parts]
    if any(each.start >= each.end for each in ranges):
        raise InvalidRequest("Range must name ranges that begin before they end.")
    return ranges


def ranges_response(
    ranges: Sequence[ByteRange], *, size: int, path: Path | None, read: ReadRange
) -> Response:
    """Answer with ranges of an object of this size; the kernel sends one that lies in a file."""
    if any(each.end > size for each in ranges):
        raise RangeNotSatisfiable(size)
    if len(ranges) > 1:
        return _multipart_response(ranges, size=size, read=read)
    [only] = ranges
    headers = {
        "Content-Type": BINARY,
        "Content-Length": str(only.length),
        "Content-Range": only.header(size),
        "Accept-Ranges": "bytes",
    }
    if path is not None:
        return FilePartResponse(path, only, status=206, headers=headers)
    return StreamingResponse(read(only), status_code=206, headers=headers)


def _multipart_response(ranges: Sequence[ByteRange], *, size: int, read: ReadRange) -> Response:
    # RFC 9110, 14.6.
    heads = [
        f"\r\n--{_BOUNDARY}\r\nContent-Type: {BINARY}\r\n"
        f"Content-Range: {each.header(size)}\r\n\r\n".encode()
        for each in ranges
    ]
    end = f"\r\n--{_BOUNDARY}--\r\n".encode()
    length = sum(map(len, heads)) + sum(each.length for each in ranges) + len(end)

    def pieces() -> Iterator[bytes]:
        for head, each in zip(heads, ranges, strict=True):
            yield head
            yield from read(each)
        yield end

    headers = {
        "Content-Type": f"multipart/byteranges; boundary={_BOUNDARY}",
        "Content-Length": str(length),
        "Accept-Ranges": "bytes",
    }
    return StreamingResponse(pieces(), status_code=206, headers=headers)
