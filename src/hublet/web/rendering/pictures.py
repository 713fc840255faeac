"""Sizes of pictures, from the first bytes of their files: PNG, JPEG, GIF, WebP, AVIF, SVG.

Nothing is decoded. A header that lies gives a wrong size or none; whatever it says, little is read.
"""

import re
import struct
from collections.abc import Callable

from hublet.core.dataclasses import dataclass

# Where the size of almost every picture stands.
HEAD_BYTES = 64 * 1024
# Larger ones are drawn by no browser.
MAX_PIXELS = 65_535

# Markers of JPEG: those with the size behind them, those with nothing, and that of Exif.
_MARKER = 0xFF
_WITH_SIZE = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_APP1 = 0xE1
_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112
# The camera lay on its side, so width and height change places.
_SIDEWAYS = range(5, 9)
_MAX_TAGS = 200

_SVG = re.compile(rb"<svg(?=[\s>/])((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>")
# What may stand before the root of an XML file, by how it begins and ends.
_PROLOG = ((b"<!--", b"-->"), (b"<?", b"?>"), (b"<!", b">"))
_MAX_TAG = 8 * 1024
_SVG_ATTRIBUTE = re.compile(rb"(?<![\w:.\-])(width|height|viewBox)\s*=\s*[\"']([^\"']*)[\"']")
_LENGTH = re.compile(rb"\s*(\d{1,6}(?:\.\d{1,9})?)(?:px)?\s*")
_NUMBER = re.compile(rb"-?\d{1,9}(?:\.\d{1,9})?")
_VIEW_BOX_NUMBERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureSize:
    """Width and height in pixels, as a browser lays the picture out."""

    width: int
    height: int


def read_size(head: bytes) -> PictureSize | None:
    """Return the size that a picture's first bytes say; None where they say none."""
    try:
        found = next((read(head) for is_of, read in _FORMATS if is_of(head)), None)
    except (struct.error, IndexError, OverflowError):
        # The header is cut, or leads out of what was read.
        return None
    if found is None:
        return None
    width, height = round(found[0]), round(found[1])
    is_drawn = 0 < width <= MAX_PIXELS and 0 < height <= MAX_PIXELS
    return PictureSize(width=width, height=height) if is_drawn else None


_Sides = tuple[float, float]


def _read_png(head: bytes) -> _Sides:
    return struct.unpack_from(">II", head, 16)


def _read_gif(head: bytes) -> _Sides:
    return struct.unpack_from("<HH", head, 6)


def _read_webp(head: bytes) -> _Sides | None:
    match head[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            low_w, high_w, low_h, high_h = struct.unpack_from("<HBHB", head, 24)
            return (high_w << 16 | low_w) + 1, (high_h << 16 | low_h) + 1
        case _:
            return None


def _read_jpeg(head: bytes) -> _Sides | None:
    position, is_sideways = 2, False
    while head[position] == _MARKER:
        marker, start = head[position + 1], position + 4
        if marker == _MARKER:
            position += 1
        elif marker in _ALONE:
            position += 2
        elif marker in _WITH_SIZE:
            height, width = struct.unpack_from(">HH", head, position + 5)
            return (height, width) if is_sideways else (width, height)
        else:
            (length,) = struct.unpack_from(">H", head, position + 2)
            position += 2 + max(length, 2)
            if marker == _APP1 and head.startswith(_EXIF, start):
                is_sideways = _orientation_in(head[start + len(_EXIF) : position]) in _SIDEWAYS
    return None


def _orientation_in(tiff: bytes) -> int:
    """Return the orientation that Exif says; 1, upright, where it says none."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, first)
        for number in range(min(count, _MAX_TAGS)):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", tiff, first + 2 + 12 * number)
            if tag == _ORIENTATION:
                return int(value)
    except struct.error:
        pass
    return 1


def _read_avif(head: bytes) -> _Sides | None:
    # Of several parts, such as tiles and thumbnails, the picture is the largest one.
    found = [struct.unpack_from(">II", head, at.end() + 4) for at in re.finditer(b"ispe", head)]
    if not found:
        return None
    width, height = max(found)
    turn = head.find(b"irot")
    is_sideways = turn >= 0 and head[turn + 4] & 1
    return (height, width) if is_sideways else (width, height)


def _read_svg(head: bytes) -> _Sides | None:
    start = _root_of(head)
    root = _SVG.match(head, start, start + _MAX_TAG)
    if root is None:
        return None
    found = dict(_SVG_ATTRIBUTE.findall(root[1]))
    box = [float(each) for each in _NUMBER.findall(found.get(b"viewBox", b""))]
    ratio = box[2] / box[3] if len(box) == _VIEW_BOX_NUMBERS and box[2] > 0 < box[3] else None
    width, height = (_length(found.get(name)) for name in (b"width", b"height"))
    if ratio is None:
        return (width, height) if width and height else None
    if width:
        return width, height or width / ratio
    return (height * ratio, height) if height else (box[2], box[3])


def _root_of(xml: bytes) -> int:
    """Return where the first element of an XML file begins, or where the file is broken."""
    position = len(xml) - len(_without_space(xml))
    while ends := [end for start, end in _PROLOG if xml.startswith(start, position)]:
        end = xml.find(ends[0], position)
        if end < 0:
            break
        position = end + len(ends[0])
        position = len(xml) - len(_without_space(xml[position:]))
    return position


def _without_space(xml: bytes) -> bytes:
    return xml.lstrip(b"\xef\xbb\xbf \t\r\n")


def _length(text: bytes | None) -> float | None:
    length = _LENGTH.fullmatch(text or b"")
    return float(length[1]) if length else None


_FORMATS: tuple[tuple[Callable[[bytes], bool], Callable[[bytes], _Sides | None]], ...] = (
    (lambda head: head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR", _read_png),
    (lambda head: head.startswith(b"\xff\xd8"), _read_jpeg),
    (lambda head: head.startswith((b"GIF87a", b"GIF89a")), _read_gif),
    (lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP", _read_webp),
    (lambda head: head[4:12] in {b"ftypavif", b"ftypavis"}, _read_avif),
    (lambda head: _without_space(head).startswith(b"<"), _read_svg),
)
