"""What a download is sent as."""

import pytest

from hublet.repos.browse.downloads import BINARY, TEXT, safe_media_type


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("README.md", TEXT),
        ("config.json", TEXT),
        ("a/LICENSE", TEXT),
        (".gitattributes", TEXT),
        ("notes.TXT", TEXT),
        ("photo.png", "image/png"),
        ("photo.JPG", "image/jpeg"),
        ("drawing.svg", "image/svg+xml"),
        ("photo.webp", "image/webp"),
        ("sound.mp3", "audio/mpeg"),
        ("sound.flac", "audio/flac"),
        ("film.mp4", "video/mp4"),
        ("paper.pdf", "application/pdf"),
        ("model.safetensors", BINARY),
        ("archive.tar.gz", BINARY),
        ("data.parquet", BINARY),
        ("noending", BINARY),
        ("what.is.this?x", BINARY),
    ],
)
def test_what_is_harmless_may_be_shown(path: str, expected: str) -> None:
    assert safe_media_type(path) == expected


@pytest.mark.parametrize(
    "path", ["page.html", "PAGE.HTM", "page.xhtml", "script.js", "script.mjs", "style.css", "x.xml"]
)
def test_pages_and_scripts_are_plain_text(path: str) -> None:
    assert safe_media_type(path) == TEXT
