"""Paging: the cursor of a list, and the URL of its next page."""

import base64
import zlib
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from hublet.core.errors import InvalidRequest

MAX_LIMIT = 100
DEFAULT_LIMIT = 50

CURSOR = "cursor"

_CHECKSUM_BYTES = 4
# What RFC 3986 allows in a path, and the mark of what is encoded already.
_PATH_CHARACTERS = "/%:@!$&'()*+,;=~"


class InvalidCursor(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("cursor must be taken from the Link header of the page before.")


def write_cursor(position: str) -> str:
    """Hide the position of a page's last row; clients are to pass it on, not to build it."""
    octets = position.encode()
    return base64.urlsafe_b64encode(_checksum(octets) + octets).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Return the position, or refuse what `write_cursor` did not write."""
    try:
        octets = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        position = octets[_CHECKSUM_BYTES:].decode()
    except ValueError:
        raise InvalidCursor from None
    # The checksum can be computed by anybody, so what PostgreSQL cannot compare is refused too.
    if write_cursor(position) != cursor or not position.isprintable():
        raise InvalidCursor
    return position


def next_url(base_url: str, *, path: bytes, query: Iterable[tuple[str, str]], cursor: str) -> str:
    """Return the address of the next page: the same list with the same filters."""
    kept = [(name, value) for name, value in query if name != CURSOR]
    return f"{base_url}{quote(path, safe=_PATH_CHARACTERS)}?{urlencode([*kept, (CURSOR, cursor)])}"


def _checksum(octets: bytes) -> bytes:
    # No protection: it only tells a mangled cursor from a real one.
    return zlib.crc32(octets).to_bytes(_CHECKSUM_BYTES)
