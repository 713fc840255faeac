"""Sizes of pictures: real files of each format, and headers that lie."""

import struct
from base64 import b64decode

import pytest
from markupsafe import Markup

from hublet.web.rendering.decoration import list_unsized_pictures, with_sizes
from hublet.web.rendering.pictures import HEAD_BYTES, MAX_PIXELS, PictureSize, read_size

# Files as Chromium and libavif wrote them: 6 by 4 pixels, and 1 or 2 of each.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAYAAAAECAYAAACtBE5DAAAAKElEQVR4AVyJgQkAAAjCrP9/LkWCEFSGawDzSnQkTLESxe9K"
    "dCRMsQsAAP//C+FkBwAAAAZJREFUAwAV0QMJDx94owAAAABJRU5ErkJggg=="
)
JPEG = b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI///////////////////////////////"
    "/////////////////////2wBDAVVaWnhpeOuCguv////////////////////////////////////////////////////////////"
    "/////////////wAARCAAEAAYDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8"
    "QAFAEBAAAAAAAAAAAAAAAAAAAAAP/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AIgAf//Z"
)
GIF = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
WEBP_LOSSY = b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
WEBP_LOSSLESS = b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
WEBP_EXTENDED = b"RIFF\x1a\x02\0\0WEBPVP8X\x0a\0\0\0\x30\0\0\0\x05\0\0\x03\0\0"
AVIF = b64decode(
    "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADybWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAA"
    "AGxpYmF2aWYAAAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAABAAABGgAAAB0AAAAoaWluZgAAAAAAAQAAABppbmZl"
    "AgAAAAABAABhdjAxQ29sb3IAAAAAamlwcnAAAABLaXBjbwAAABRpc3BlAAAAAAAAAAIAAAACAAAAEHBpeGkAAAAAAwgICAAAAAxh"
    "djFDgQ0MAAAAABNjb2xybmNseAACAAIAAYAAAAAXaXBtYQAAAAAAAAABAAEEAQKDBAAAACVtZGF0EgAKCBgANogQEAwgMg8f8D//"
    "/8WfhwB8+ErK42A="
)


def exif(orientation: int, order: str = ">") -> bytes:
    """Return the segment that a camera writes into a JPEG."""
    tiff = {">": b"MM\0*", "<": b"II*\0"}[order] + struct.pack(
        f"{order}IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0
    )
    data = b"Exif\0\0" + tiff
    return b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data


def turned(orientation: int, order: str = ">") -> bytes:
    return JPEG[:2] + exif(orientation, order) + JPEG[2:]


def svg(attributes: str) -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}><path/></svg>'.encode()


@pytest.mark.parametrize(
    ("head", "width", "height"),
    [
        pytest.param(PNG, 6, 4, id="PNG"),
        pytest.param(JPEG, 6, 4, id="JPEG"),
        pytest.param(turned(3), 6, 4, id="JPEG upside down"),
        pytest.param(turned(6), 4, 6, id="JPEG on its side"),
        pytest.param(turned(8, "<"), 4, 6, id="JPEG on its other side"),
        pytest.param(GIF, 1, 1, id="GIF"),
        pytest.param(WEBP_LOSSY, 1, 1, id="WebP"),
        pytest.param(WEBP_LOSSLESS, 1, 1, id="WebP lossless"),
        pytest.param(WEBP_EXTENDED, 6, 4, id="WebP extended"),
        pytest.param(AVIF, 2, 2, id="AVIF"),
        pytest.param(svg('width="6" height="4px"'), 6, 4, id="SVG"),
        pytest.param(b'<?xml version="1.0"?>\n<!-- <svg> -->\n' + svg('viewBox="0 0 6 4"'), 6, 4),
        pytest.param(svg('width="3" viewBox="0 0 6 4"'), 3, 2, id="SVG with one side"),
        pytest.param(svg('height="8" viewBox="0,0,6,4" width="100%"'), 12, 8, id="SVG, percent"),
    ],
)
def test_the_size_is_read_from_the_first_bytes(head: bytes, width: int, height: int) -> None:
    assert read_size(head) == PictureSize(width=width, height=height)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"no picture",
        b"<p>no picture either</p>",
        PNG[:20],
        PNG[:16] + struct.pack(">II", 0, 4),
        PNG[:16] + struct.pack(">II", 4, MAX_PIXELS + 1),
        JPEG[:100],
        JPEG[:2] + b"\xff\xe0\0\0" * 100,
        JPEG[:2] + b"\xff" * HEAD_BYTES,
        b"\xff\xd8\xff\xe1\xff\xffExif\0\0MM\0*\xff\xff\xff\xff",
        GIF[:8],
        WEBP_EXTENDED[:20],
        b"RIFF\0\0\0\0WEBPVP9 ",
        AVIF[:150],
        svg('width="1e9" height="4"'),
        svg('width="4cm" height="4cm"'),
        svg('viewBox="0 0 0 0"'),
        svg('viewBox="' + "9" * 60_000 + '"'),
        b"<svg " + b"a" * HEAD_BYTES,
        b"<" * HEAD_BYTES,
        b"<!--" * (HEAD_BYTES // 4),
        b"<!---->" * (HEAD_BYTES // 7),
        b"<?" * (HEAD_BYTES // 2),
        b"<svg " * (HEAD_BYTES // 5),
        b"<svg 'a" * (HEAD_BYTES // 7),
    ],
)
def test_a_header_that_is_cut_or_lies_gives_no_size(head: bytes) -> None:
    assert read_size(head) is None


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("", ' width="640" height="320"'),
        (' width="320"', ' width="320" height="160"'),
        (' height="80px"', ' height="80px" width="160"'),
        (' width="100" height="100"', ' width="100" height="100"'),
        (' width="50%"', ' width="50%"'),
    ],
)
def test_what_the_author_said_of_the_size_stays(said: str, written: str) -> None:
    html = Markup(f'<p><img src="/a/b?x=1&amp;y" alt="A"{said}> <img src="/c" alt=""></p>')

    sized = with_sizes(html, {"/a/b?x=1&y": PictureSize(width=640, height=320)})

    assert sized == f'<p><img src="/a/b?x=1&amp;y" alt="A"{written}> <img src="/c" alt=""></p>'


def test_only_pictures_without_a_whole_size_are_looked_up_and_not_too_many() -> None:
    html = Markup(
        '<img src="/sized" width="1" height="1"><img src="/one" width="1"><img src="/a&amp;b">'
        '<pre>&lt;img src="/code"&gt;</pre><img src="/a&amp;b"><img src="/last">'
    )

    assert list_unsized_pictures(html, most=2) == ["/one", "/a&b"]
