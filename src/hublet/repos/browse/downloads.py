"""Downloads: the content of a file in git or in the storage, its media type, and headers of weights."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from typing import Any

from hublet.core.database import Database
from hublet.core.errors import InvalidRequest
from hublet.repos import blobs_store, safetensors
from hublet.repos.browse.records import Revision, StoredFile
from hublet.repos.errors import ContentMissing, EntryNotFound
from hublet.repos.git import bare_repos, trees
from hublet.repos.git.trees import LfsPointer
from hublet.repos.safetensors import HeaderDamaged, HeaderTooLarge
from hublet.repos.xet.addresses import linked_headers, xet_headers
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.storage.records import Content

BINARY = "application/octet-stream"
TEXT = "text/plain; charset=utf-8"

_INDEX_END = ".safetensors.index.json"
# Of the headers of all files of a model, as JSON.
_LARGEST_DESCRIPTION = 16 << 20

# The table of Python itself; the files of a machine must not change a response.
_KNOWN = MimeTypes(filenames=())
for _suffix, _type in (
    (".flac", "audio/flac"),
    (".m4a", "audio/mp4"),
    (".oga", "audio/ogg"),
    (".ogg", "audio/ogg"),
    (".webp", "image/webp"),
):
    # What every browser shows, and this Python does not know.
    _KNOWN.add_type(_type, _suffix)
_INLINE = ("image/", "audio/", "video/")
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


def safe_media_type(path: str) -> str:
    """Return the media type to send a file with, by its name alone.

    HTML and scripts are sent as plain text: no uploaded code may run on the hub's own origin.
    """
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    if suffix in _TEXT_SUFFIXES or name in _TEXT_NAMES:
        return TEXT
    guessed, encoding = _KNOWN.guess_type(f"file{suffix}")
    if guessed is None or encoding is not None:
        return BINARY
    if guessed.startswith(_INLINE) or guessed == "application/pdf":
        return guessed
    return TEXT if guessed.startswith("text/") else BINARY


async def get_file(
    database: Database, revision: Revision, path: str, *, may_be_old: bool = False
) -> StoredFile:
    """Return the file with its content: in git, or of a large one in the storage."""
    file = await get_raw_file(revision, path)
    if file.entry.lfs is None:
        return file
    return await _with_content(database, file, file.entry.lfs, may_be_old=may_be_old)


async def get_raw_file(revision: Revision, path: str) -> StoredFile:
    """Return the file as git holds it: of a large one, the pointer."""
    return await asyncio.to_thread(_get_file, revision, path)


def _get_file(revision: Revision, path: str) -> StoredFile:
    # A tag may have an id of its own; clients want that of the commit it stands for.
    commit = str(trees.get_commit(bare_repos.open_repository(revision.folder), revision.commit).id)
    entry = trees.get_entry(revision.folder, commit, path)
    if entry.type != "file":
        raise EntryNotFound(path, commit=commit)
    return StoredFile(repo=revision.repo, commit=commit, entry=entry, folder=revision.folder)


async def _with_content(
    database: Database, file: StoredFile, lfs: LfsPointer, *, may_be_old: bool
) -> StoredFile:
    # A pointer can be written by anybody who knows a digest; that is no right to the content.
    async with database.read_replica() if may_be_old else database.read() as conn:
        found = await blobs_store.find_contents_in_repo(conn, file.repo.id, [lfs.sha256])
    content = found.get(lfs.sha256)
    if content is None or content.size != lfs.size:
        raise ContentMissing(file.entry.path)
    return replace(file, content=content)


async def lfs_headers(database: Database, file: StoredFile, content: Content) -> dict[str, str]:
    """Return the headers of a file in LFS; one that is cut can be downloaded through Xet."""
    headers = linked_headers(sha256=content.sha256, size=content.size)
    if content.xet_hash is None:
        return headers
    async with database.read() as conn:
        xet = await xet_headers(conn, file.repo, content.xet_hash, revision=file.commit)
    return headers | xet


async def read_git_file(file: StoredFile) -> bytes:
    return await asyncio.to_thread(trees.read_blob, file.folder, file.entry.oid)


async def open_file(
    database: Database, revision: Revision, file: StoredFile
) -> Callable[[int, int], bytes]:
    """Return what reads a part of a file, wherever it lies; it blocks."""
    if file.entry.lfs is None:
        data = await read_git_file(file)
        return lambda start, end: data[start:end]
    stored = await get_file(database, revision, file.entry.path)
    assert stored.content is not None  # noqa: S101 - of a file in LFS
    source = ContentSource(open_store(database.hub.settings), stored.content)
    return lambda start, end: b"".join(source.pieces(start, end))


async def describe_safetensors(database: Database, revision: Revision, path: str) -> dict[str, Any]:
    """Return the header of a safetensors file, or those of all files that an index names."""
    if not path.endswith(_INDEX_END):
        header = await _read_header(database, revision, path)
        return {"sharded": False, "header": header, **_counts([header])}
    index = await _read_index(database, revision, path)
    folder = path[: path.rfind("/") + 1]
    headers: dict[str, dict[str, Any]] = {}
    size = 0
    for name in safetensors.shards_in_index(json.dumps(index).encode()):
        headers[name] = await _read_header(database, revision, folder + name)
        size += len(json.dumps(headers[name]))
        if size > _LARGEST_DESCRIPTION:
            raise InvalidRequest("path: the headers of all files are too large; name one of them.")
    return {"sharded": True, "index": index, "headers": headers, **_counts(headers.values())}


async def _read_header(database: Database, revision: Revision, path: str) -> dict[str, Any]:
    file = await get_raw_file(revision, path)
    read = await open_file(database, revision, file)
    try:
        header = await asyncio.to_thread(safetensors.read_raw_header, read, size=file.entry.size)
        safetensors.check_header(header)
    except HeaderTooLarge:
        raise InvalidRequest(f"path: the header of {path} is too large.") from None
    except HeaderDamaged:
        raise InvalidRequest(f"path: {path} is no safetensors file, or damaged.") from None
    return header


async def _read_index(database: Database, revision: Revision, path: str) -> dict[str, Any]:
    file = await get_raw_file(revision, path)
    if file.entry.size > safetensors.MAX_INDEX_BYTES:
        raise InvalidRequest(f"path: {path} is too large.")
    read = await open_file(database, revision, file)
    data = await asyncio.to_thread(read, 0, file.entry.size)
    if not safetensors.shards_in_index(data):
        raise InvalidRequest(f"path: {path} is no index of safetensors files, or damaged.")
    index: dict[str, Any] = json.loads(data)
    return index


def _counts(headers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    counted = safetensors.count_parameters(map(safetensors.check_header, headers))
    return {"parameterCount": counted, "parameterTotal": sum(counted.values())}
