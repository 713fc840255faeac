"""Files of repositories by `hf://` addresses: parsed, listed, described and read."""

import asyncio
import re
from collections.abc import Callable
from typing import Annotated, Literal, Self
from urllib.parse import quote, unquote

from pydantic import Field

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import InvalidRequest
from hublet.core.schema import Schema
from hublet.mcp.tools import MAX_TEXT
from hublet.repos import service as repos
from hublet.repos.browse import downloads, revisions
from hublet.repos.errors import FileNotFound
from hublet.repos.files import service as bucket_files
from hublet.repos.files.records import File
from hublet.repos.records import RepoAddress, RepoType, Right
from hublet.tokens.records import Caller

SCHEME = "hf://"
MOST_ENTRIES = 1000
# What one read returns at most, in bytes.
MOST_BYTES = MAX_TEXT
_LONGEST_URI = 5000
_PREFIXES = {kind.plural: kind for kind in RepoType}
_NAME = re.compile(r"[A-Za-z0-9._-]{1,96}")
_MAIN = "main"
# Halves of characters where a part of a file begins and ends, and a few others.
_MOST_BROKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUri:
    """An `hf://` address: a repository, a revision of it, and a path in that."""

    type: RepoType
    namespace: str
    name: str
    revision: str | None = None
    path: str = ""

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse an address; paths and revisions are percent-encoded where they have to be."""
        parts = uri.removeprefix(SCHEME).strip("/").split("/")
        if not uri.startswith(SCHEME) or len(uri) > _LONGEST_URI:
            raise _unreadable()
        kind = _PREFIXES.get(parts[0])
        parts = parts if kind is None else parts[1:]
        if len(parts) < 2:  # noqa: PLR2004 - owner and name
            raise _unreadable()
        name, at, revision = parts[1].partition("@")
        if not (_NAME.fullmatch(parts[0]) and _NAME.fullmatch(name)) or (at and not revision):
            raise _unreadable()
        path = unquote("/".join(parts[2:]))
        if "\x00" in path or ".." in path.split("/"):
            raise InvalidRequest("uri: the path must not have .. or the NUL character.")
        return cls(
            type=kind or RepoType.model,
            namespace=parts[0],
            name=name,
            revision=unquote(revision) or None,
            path=path,
        )

    @property
    def address(self) -> RepoAddress:
        return RepoAddress(type=self.type, namespace=self.namespace, name=self.name)

    def __str__(self) -> str:
        revision = "" if self.revision is None else f"@{quote(self.revision, safe='')}"
        path = f"/{quote(self.path)}" if self.path else ""
        return f"{SCHEME}{self.type.prefix}{self.namespace}/{self.name}{revision}{path}"

    def below(self, path: str) -> str:
        uri = FileUri(
            type=self.type,
            namespace=self.namespace,
            name=self.name,
            revision=self.revision,
            path=path,
        )
        return str(uri)


def _unreadable() -> InvalidRequest:
    return InvalidRequest(
        "uri must be hf://[datasets/|spaces/|kernels/|buckets/|containers/]owner/name"
        "[@revision][/path]."
    )


class FileEntry(Schema):
    """A file or a folder."""

    uri: str
    path: str
    type: Literal["file", "folder"]
    size: Annotated[int | None, Field(description="In bytes; none of a folder.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFile:
    """A file that the caller may read; `read` takes the first byte and the one after the last."""

    size: int
    media_type: str
    read: Callable[[int, int], bytes]


async def list_folder(
    database: Database, caller: Caller | None, uri: FileUri, *, recursive: bool, limit: int
) -> tuple[list[FileEntry], bool]:
    """Return what a folder has, and whether there is more."""
    found = await (_list_git if uri.type.has_git else _list_bucket)(
        database, caller, uri, recursive=recursive, limit=limit + 1
    )
    return found[:limit], len(found) > limit


async def _list_git(
    database: Database, caller: Caller | None, uri: FileUri, *, recursive: bool, limit: int
) -> list[FileEntry]:
    revision = await revisions.get_revision(database, caller, uri.address, uri.revision or _MAIN)
    entries = await revisions.list_entries(
        revision, uri.path, recursive=recursive, after="", limit=limit
    )
    return [
        FileEntry(uri=uri.below(entry.path), path=entry.path, type="file", size=entry.size)
        if entry.type == "file"
        else FileEntry(uri=uri.below(entry.path), path=entry.path, type="folder")
        for entry in entries
    ]


async def _list_bucket(
    database: Database, caller: Caller | None, uri: FileUri, *, recursive: bool, limit: int
) -> list[FileEntry]:
    _refuse_revision(uri)
    prefix = f"{uri.path}/" if uri.path else ""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, uri.address, Right.read)
        found = await bucket_files.list_tree(
            conn, repo, prefix=prefix, after="", limit=limit, recursive=recursive
        )
    return [
        FileEntry(uri=uri.below(each.path), path=each.path, type="file", size=each.size)
        if isinstance(each, File)
        else FileEntry(uri=uri.below(each.path), path=each.path, type="folder")
        for each in found
    ]


async def describe(database: Database, caller: Caller | None, uri: FileUri) -> FileEntry:
    """Return what lies at an address: its type and its size."""
    if uri.type.has_git:
        revision = await revisions.get_revision(
            database, caller, uri.address, uri.revision or _MAIN
        )
        found = await revisions.find_entries(revision, [uri.path]) if uri.path else []
        if found and found[0].type == "file":
            return FileEntry(uri=str(uri), path=uri.path, type="file", size=found[0].size)
        is_folder = bool(found) or not uri.path
    else:
        _refuse_revision(uri)
        async with database.read() as conn:
            repo = await repos.get(conn, caller, uri.address, Right.read)
            file = await bucket_files.find(conn, repo, uri.path) if uri.path else None
        if file is not None:
            return FileEntry(uri=str(uri), path=uri.path, type="file", size=file.size)
        below, _ = await list_folder(database, caller, uri, recursive=False, limit=1)
        is_folder = bool(below) or not uri.path
    if not is_folder:
        raise FileNotFound(uri.path, full_name=uri.address.full_name)
    return FileEntry(uri=str(uri), path=uri.path, type="folder")


def _refuse_revision(uri: FileUri) -> None:
    if uri.revision is not None:
        raise InvalidRequest(f"uri: a {uri.type} has no revisions.")


async def open_file(database: Database, caller: Caller | None, uri: FileUri) -> OpenFile:
    """Open a file that the caller may read; of a gated repository, who was let in."""
    if not uri.path:
        raise InvalidRequest("uri must name a file: this is a repository.")
    media_type = downloads.safe_media_type(uri.path)
    if not uri.type.has_git:
        _refuse_revision(uri)
        async with database.read() as conn:
            repo = await repos.get(conn, caller, uri.address, Right.read)
            found = await bucket_files.get(conn, repo, uri.path)
            source = await bucket_files.open_content(conn, repo, found)
        return OpenFile(
            size=found.size,
            media_type=media_type,
            read=lambda start, end: b"".join(source.pieces(start, end)),
        )
    revision = await revisions.get_revision(
        database, caller, uri.address, uri.revision or _MAIN, right=Right.read
    )
    file = await downloads.get_raw_file(revision, uri.path)
    read = await downloads.open_file(database, revision, file)
    return OpenFile(size=file.entry.size, media_type=media_type, read=read)


async def read_bytes(file: OpenFile, *, offset: int = 0, count: int = MOST_BYTES) -> bytes:
    end = min(file.size, offset + min(count, MOST_BYTES))
    return b"" if offset >= end else await asyncio.to_thread(file.read, offset, end)


def text_of(data: bytes) -> str | None:
    """Return bytes as text, None when they are none; characters that an end cuts are replaced."""
    text = data.decode(errors="replace")
    broken = text.count("\ufffd")
    return None if "\x00" in text or broken > _MOST_BROKEN + len(text) // 50 else text
