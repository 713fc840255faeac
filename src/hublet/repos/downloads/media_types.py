"""What a download is called by its name: enough to show a picture, never to run a page."""

from mimetypes import MimeTypes
from pathlib import PurePosixPath

BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"

# The table that Python brings along; what a machine adds to it must not change an answer.
_KNOWN = MimeTypes(filenames=())
_SHOWN = ("image/", "audio/", "video/")
_SUFFIXES_OF_TEXT = (
    ".bash .c .cc .cfg .conf .cpp .cs .csv .cu .cuh .css .go .h .hpp .htm .html .ini .ipynb .java "
    ".jinja .jl .js .json .jsonl .jsx .kt .log .lua .md .mjs .ndjson .nix .php .pl .proto .py .pyi "
    ".r .rb .rs .rst .scala .sh .sql .srt .swift .tex .toml .ts .tsv .tsx .txt .vtt .xhtml .xml "
    ".yaml .yml .zsh"
)
_NAMES_OF_TEXT = (
    "authors changelog codeowners contributing copying dockerfile license makefile notice readme "
    ".dockerignore .editorconfig .env .gitattributes .gitignore .gitmodules"
)

_TEXT_SUFFIXES = frozenset(_SUFFIXES_OF_TEXT.split())
_TEXT_NAMES = frozenset(_NAMES_OF_TEXT.split())


def media_type_of(path: str) -> str:
    """Return the type to send a file with, the same whatever is in it.

    Pages and scripts are plain text here: on the hub's own origin nobody else's may run.
    """
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    if suffix in _TEXT_SUFFIXES or name in _TEXT_NAMES:
        return TEXT
    guessed, encoding = _KNOWN.guess_type(f"file{suffix}")
    if guessed is None or encoding is not None:
        return BINARY
    if guessed.startswith(_SHOWN) or guessed == "application/pdf":
        return guessed
    return TEXT if guessed.startswith("text/") else BINARY
