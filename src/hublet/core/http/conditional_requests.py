"""Conditional and range requests (RFC 9110, 13 and 14): ETag, If-None-Match, Range."""

import re
from dataclasses import dataclass
from hashlib import sha256

from starlette.requests import Request

from hublet.core.errors import HubError


def etag_of(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()[:32]}"'


def has_version(request: Request, etag: str) -> bool:
    """Tell whether the client has this version, so that 304 is enough."""
    # RFC 9110, 13.1.2: the comparison is the weak one, and "*" means any version.
    lines = request.headers.getlist("if-none-match")
    tags = [tag.strip().removeprefix("W/") for line in lines for tag in line.split(",")]
    return etag in tags or "*" in tags


_BYTE_RANGE = re.compile(r"bytes\s*=\s*(\d*)\s*-\s*(\d*)", re.IGNORECASE)


class RangeNotSatisfiable(HubError):
    """The range begins after the end of the file."""

    status = 416

    def __init__(self, size: int) -> None:
        super().__init__(
            f"The range lies outside the file, which has {size} bytes.",
            headers={"Content-Range": f"bytes */{size}"},
        )


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Half-open range of bytes: `start` is in it, `end` is not."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start

    def header(self, size: int) -> str:
        return f"bytes {self.start}-{self.end - 1}/{size}"


def parse_range(header: str | None, *, size: int) -> ByteRange | None:
    """Return the requested part; None for the whole file.

    The whole file is sent, too, for what RFC 9110 lets a server ignore: several parts, other units.
    """
    match = _BYTE_RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, end = max(size - int(match[2]), 0), size
    else:
        start, end = int(match[1]), min(int(match[2] or size) + 1, size)
        if match[2] and int(match[2]) < start:
            return None
    if start >= end:
        raise RangeNotSatisfiable(size)
    return ByteRange(start, end)
