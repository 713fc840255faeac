"""What kind of content a file has, as HTTP says it."""

import mimetypes
import re

from hublet.repos.files.errors import InvalidMediaType

UNKNOWN = "application/octet-stream"

_LONGEST = 255
_WORD = r"[A-Za-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}(\s*;[\x20-\x7e]*)?")
# Without the lists of the machine, which differ from one to the next.
_known = mimetypes.MimeTypes()


def check_media_type(text: str) -> None:
    """Refuse what could not stand in a header of an answer."""
    if len(text) > _LONGEST or _MEDIA_TYPE.fullmatch(text) is None:
        raise InvalidMediaType


def media_type_of(path: str) -> str:
    """Guess from the name of a file what is in it."""
    guessed, encoding = _known.guess_type(path.rpartition("/")[2])
    # A compressed text is no text to who receives it.
    return UNKNOWN if guessed is None or encoding is not None else guessed
