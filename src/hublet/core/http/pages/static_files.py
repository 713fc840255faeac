"""The style, the script and the icon of the pages, from inside the package."""

from importlib.resources import files

from hublet.core.http.pages.documents import Document

_MEDIA_TYPES = {
    "docs.js": "text/javascript",
    "hublet.css": "text/css",
    "icon.svg": "image/svg+xml",
    "passkeys.js": "text/javascript",
}


def _load(name: str) -> Document:
    return Document(
        body=(files("hublet.core.http.pages") / "static" / name).read_bytes(),
        media_type=_MEDIA_TYPES[name],
        # Safe for a year, because the pages name the version of the file in its address.
        cache_control="public, max-age=31536000, immutable",
    )


STATIC_FILES = {name: _load(name) for name in _MEDIA_TYPES}


def address_of(name: str) -> str:
    version = STATIC_FILES[name].etag.strip('"')[:12]
    return f"/static/{name}?v={version}"
