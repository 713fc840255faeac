"""Where a page of a revision ended: later pages stay with the commit that the first one showed."""

from urllib.parse import quote, unquote

from hublet.core.paging import InvalidCursor
from hublet.repos.refs.service import SHA

# More commits than that have no page of their own.
_MOST_DIGITS = 9


def write_position(commit: str, last: str) -> str:
    # Names of files may hold what a cursor may not.
    return f"{commit}:{quote(last, safe='/')}"


def read_position(position: str) -> tuple[str, str]:
    commit, colon, last = position.partition(":")
    if not colon or not SHA.fullmatch(commit):
        raise InvalidCursor
    return commit, unquote(last)


def read_count(text: str) -> int:
    """Return how many were shown before; nothing was before the first page."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise InvalidCursor
    return int(text)
