import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.accounts.avatars import MAX_AVATAR_BYTES, default_avatar, sniff_image

ADA = "650000000000000000000001"
GRACE = "650000000000000000000002"
SVG = "{http://www.w3.org/2000/svg}"


def the_letter(picture: bytes) -> str | None:
    text = ET.fromstring(picture).find(f"{SVG}text")
    assert text is not None
    return text.text


def the_colours(picture: bytes) -> list[str]:
    return [stop.attrib["stop-color"] for stop in ET.fromstring(picture).iter(f"{SVG}stop")]


def brightness(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_picture_of_an_account_never_changes() -> None:
    assert default_avatar(ADA, "ada") == (
        b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">'
        b'<defs><linearGradient id="g" x1="0" y1="0" x2="1" y2="1">'
        b'<stop offset="0" stop-color="#8e295d"/><stop offset="1" stop-color="#8e3929"/>'
        b"</linearGradient></defs>"
        b'<rect width="64" height="64" fill="url(#g)"/>'
        b'<text x="32" y="33" fill="#ffffff" font-family="sans-serif" font-size="32" '
        b'text-anchor="middle" dominant-baseline="central">A</text></svg>'
    )


def test_the_colours_come_from_the_id_and_not_from_the_name() -> None:
    assert the_colours(default_avatar(ADA, "ada")) == the_colours(default_avatar(ADA, "bob"))
    assert the_colours(default_avatar(ADA, "ada")) != the_colours(default_avatar(GRACE, "ada"))


@pytest.mark.parametrize(
    ("name", "letter"),
    [
        pytest.param("ada", "A", id="the first letter in capitals"),
        pytest.param("4chan", "4", id="a digit"),
        pytest.param("élodie", "É", id="a letter outside ASCII"),
        pytest.param("<script>", "<", id="a letter that XML must not read"),
        pytest.param("&amp;", "&", id="another one"),
        pytest.param("", "?", id="no name"),
        pytest.param(" ada", "?", id="a blank"),
        pytest.param("\0ada", "?", id="a character that XML cannot carry"),
        pytest.param("\ud800", "?", id="half a surrogate pair"),
    ],
)
def test_the_letter_comes_from_the_name(name: str, letter: str) -> None:
    assert the_letter(default_avatar(ADA, name)) == letter


@given(st.text(st.characters()), st.text())
def test_every_picture_is_small_readable_xml(name: str, account_id: str) -> None:
    picture = default_avatar(account_id, name)

    assert ET.fromstring(picture).tag == f"{SVG}svg"
    assert len(picture) < 1000


def test_the_white_letter_can_be_read_on_every_colour() -> None:
    """WCAG 2.2 asks for a contrast of 3 to 1 in large letters."""
    colours = {c for n in range(2000) for c in the_colours(default_avatar(str(n), "a"))}

    assert len(colours) > 200
    assert min(1.05 / (brightness(colour) + 0.05) for colour in colours) >= 3


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png", id="PNG"),
        pytest.param(b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg", id="JPEG"),
        pytest.param(b"\xff\xd8\xff\xe1\0\x10Exif", "image/jpeg", id="JPEG of a camera"),
        pytest.param(b"GIF87a\1\0\1\0", "image/gif", id="GIF of 1987"),
        pytest.param(b"GIF89a\1\0\1\0", "image/gif", id="GIF of 1989"),
        pytest.param(b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp", id="WebP"),
        pytest.param(b"RIFF\x24\0\0\0WAVEfmt ", None, id="a sound in the same container"),
        pytest.param(b'<svg xmlns="http://www.w3.org/2000/svg"/>', None, id="SVG"),
        pytest.param(b'<?xml version="1.0"?><svg/>', None, id="SVG with a declaration"),
        pytest.param(b"<html>GIF89a</html>", None, id="a page that mentions a picture"),
        pytest.param(b" \x89PNG\r\n\x1a\n", None, id="a blank in front"),
        pytest.param(b"\x89PNG\n\x1a\n", None, id="PNG broken by a text transfer"),
        pytest.param(b"GIF88a", None, id="a GIF that does not exist"),
        pytest.param(b"RIFF", None, id="only the beginning"),
        pytest.param(b"", None, id="empty"),
    ],
)
def test_the_first_bytes_tell_the_media_type(data: bytes, media_type: str | None) -> None:
    assert sniff_image(data) == media_type


def test_our_own_drawing_is_not_accepted_as_an_upload() -> None:
    assert sniff_image(default_avatar(ADA, "ada")) is None


def test_an_upload_has_at_most_half_a_mebibyte() -> None:
    assert MAX_AVATAR_BYTES == 512 * 1024
