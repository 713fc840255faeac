"""The rules for paths of files, the same in git and in buckets."""

import re
import unicodedata

from hublet.repos.errors import InvalidPath

MAX_BYTES = 4096
MAX_SEGMENT_BYTES = 255

# Characters that the file system of macOS leaves out when it compares names.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# What Windows takes for .git: its short name, and .git before blanks, dots or a stream's name.
_GIT_FOLDER = re.compile(r"(\.git[ .]*|git~[0-9]+[ .]*)(:.*)?", re.DOTALL)


def check_path(path: str) -> None:
    """Refuse with InvalidPath, which says the rule, what cannot be the path of a file.

    A path is safe on every system that somebody may check it out on: it stays below the folder
    it is put in, and it is never taken for git's own folder.
    """
    try:
        octets = path.encode()
    except UnicodeEncodeError:
        raise InvalidPath("it is valid Unicode text") from None
    if not 1 <= len(octets) <= MAX_BYTES:
        raise InvalidPath(f"it has 1 to {MAX_BYTES} bytes")
    if "\\" in path:
        raise InvalidPath("its parts are separated by '/', and it has no backslash")
    if any(unicodedata.category(character) == "Cc" for character in path):
        raise InvalidPath("it has no control characters")
    for segment in path.split("/"):
        _check_segment(segment)


def _check_segment(segment: str) -> None:
    if not segment:
        raise InvalidPath("it neither begins nor ends with '/', and has no '//'")
    if segment in {".", ".."}:
        raise InvalidPath("none of its parts is '.' or '..'")
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        raise InvalidPath(f"each of its parts has at most {MAX_SEGMENT_BYTES} bytes")
    if _GIT_FOLDER.fullmatch(_IGNORED.sub("", segment).casefold()):
        raise InvalidPath("none of its parts is git's own folder '.git', in any spelling")
