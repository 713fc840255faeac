"""Positions in lists as the text of a cursor."""

import re

from hublet.core.clock import to_micros
from hublet.core.paging import InvalidCursor
from hublet.repos.lists.records import OwnPosition, Position, Sort
from hublet.repos.records import Repo

_TEXT = re.compile(r"(\d{1,18}):([0-9a-f]{24})")
_OWN_TEXT = re.compile(r"([a-z]{1,20}):(\d{1,18}):([0-9a-f]{24})")


def write_position(repo: Repo, sort: Sort) -> str:
    values = {
        Sort.creation: to_micros(repo.created_at),
        Sort.update: to_micros(repo.updated_at),
        Sort.likes: repo.likes,
        Sort.downloads: repo.downloads,
    }
    return f"{values[sort]}:{repo.id}"


def read_position(text: str) -> Position | None:
    """Return None at the start of a list; refuse what `write_position` did not write."""
    if not text:
        return None
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return Position(value=int(match[1]), repo_id=match[2])


def write_own_position(repo: Repo) -> str:
    return f"{repo.type}:{to_micros(repo.created_at)}:{repo.id}"


def read_own_position(text: str) -> OwnPosition:
    """Return the start of a list for no text; refuse what `write_own_position` did not write."""
    if not text:
        return OwnPosition()
    match = _OWN_TEXT.fullmatch(text)
    if match is None:
        raise InvalidCursor
    return OwnPosition(type=match[1], value=int(match[2]), repo_id=match[3])
