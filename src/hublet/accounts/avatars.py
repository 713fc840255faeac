"""Avatars: their URL, the SVG drawn for accounts without an image, and image types."""

import colorsys
import hashlib
from xml.sax.saxutils import escape

MAX_AVATAR_BYTES = 524_288

_LIGHTNESS = 0.36
_SATURATION = 0.55
_HUE_STEP = 40 / 360

_DRAWING = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">\
<defs><linearGradient id="g" x1="0" y1="0" x2="1" y2="1">\
<stop offset="0" stop-color="{start}"/><stop offset="1" stop-color="{end}"/>\
</linearGradient></defs>\
<rect width="64" height="64" fill="url(#g)"/>\
<text x="32" y="33" fill="#ffffff" font-family="sans-serif" font-size="32" \
text-anchor="middle" dominant-baseline="central">{letter}</text></svg>"""

# SVG is not among them: it can carry scripts.
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def default_avatar(account_id: str, name: str) -> bytes:
    """Draw the SVG of an account without a picture: colours of its id, letter of its name."""
    hue = hashlib.sha256(account_id.encode()).digest()[0] / 256
    drawing = _DRAWING.format(
        start=_colour(hue), end=_colour(hue + _HUE_STEP), letter=escape(_letter(name))
    )
    return drawing.encode()


def sniff_image(data: bytes) -> str | None:
    """Return the media type by the first bytes, whatever type the sender named."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _MAGIC if data.startswith(magic)), None)


def _colour(hue: float) -> str:
    parts = colorsys.hls_to_rgb(hue % 1, _LIGHTNESS, _SATURATION)
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)


def _letter(name: str) -> str:
    # Control characters have no place in XML, not even escaped.
    first = name[:1].upper()
    return first if first.isprintable() and first.strip() else "?"


def avatar_url(base_url: str, account_id: str) -> str:
    return f"{base_url}/avatars/{account_id}"
