"""File responses: a file sent whole, in part, or not at all when the client has it already."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hublet.core.http.conditional_requests import (
    ByteRange,
    RangeNotSatisfiable,
    has_version,
    parse_range,
)
from hublet.core.http.exchange import exchange_of
from hublet.core.http.response_bodies import Buffer, DirectSender, find_sender

__all__ = [
    "FILE_OR_INFO_RESPONSES",
    "FILE_RESPONSES",
    "FilePartResponse",
    "FileSource",
    "RangeNotSatisfiable",
    "blob_response",
    "content_disposition",
    "content_response",
    "file_info_response",
    "redirect_response",
]

_CHUNK = 1 << 20

# What a browser may show by itself; everything else it is told to save.
_INLINE_TYPES = re.compile(r"(image|audio|video)/.*|text/plain\b.*")
# A file is somebody's upload: opened on its own it may neither run nor load anything.
_POLICY = "default-src 'none'; sandbox"

_VERSION = {"ETag": {"description": "The version.", "required": True, "schema": {"type": "string"}}}
_CONTENT_RANGE = {"Content-Range": {"required": True, "schema": {"type": "string"}}}
_BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}

# For the `responses` of a route that answers with one of the functions below.
FILE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole file.", "content": _BINARY, "headers": _VERSION},
    206: {
        "description": "The part that `Range` asks for.",
        "content": _BINARY,
        "headers": _VERSION | _CONTENT_RANGE,
    },
    304: {"description": "The version in `If-None-Match` is current.", "headers": _VERSION},
    416: {"description": "The file ends before `Range` begins.", "headers": _CONTENT_RANGE},
}

_FILE_INFO = "application/vnd.xet-fileinfo+json"
_FILE_INFO_SCHEMA = {
    "type": "object",
    "required": ["hash", "etag", "size"],
    "properties": {
        "hash": {"type": "string"},
        "etag": {"type": "string"},
        "size": {"type": "integer"},
    },
}
# The same for a route that answers with `file_info_response` to those who want that.
FILE_OR_INFO_RESPONSES: dict[int | str, dict[str, Any]] = {
    **FILE_RESPONSES,
    302: {
        "description": "A large file can be read at `Location`, in the object storage, for an hour.",
        "headers": _VERSION | {"Location": {"required": True, "schema": {"type": "string"}}},
    },
    200: {
        **FILE_RESPONSES[200],
        "content": {**_BINARY, _FILE_INFO: {"schema": _FILE_INFO_SCHEMA}},
    },
}


class FileSource(Protocol):
    """Where the bytes of a file come from: a path that the kernel can send, or pieces."""

    @property
    def path(self) -> Path | None: ...

    def pieces(self, start: int, end: int) -> Generator[Buffer]:
        """Yield the bytes from start to before end; blocks."""
        ...


async def blob_response(  # noqa: PLR0913 - what a file is, each under its name
    request: Request,
    source: FileSource,
    *,
    size: int,
    etag: str,
    file_name: str,
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a file whose content never changes under its version.

    `etag` comes without quotes, `file_name` is what a browser saves it as. `If-None-Match`,
    `Range` with `If-Range`, and HEAD are looked after here; of several ranges in one request
    none is taken, and the whole file is sent. Raises FileNotFoundError before the answer starts.
    """
    answer = _headers(etag, file_name, media_type, headers)
    if has_version(request, answer["ETag"]):
        return Response(status_code=304, headers=answer)
    if source.path is not None:
        await asyncio.to_thread(source.path.stat)
    part = _requested_part(request, answer, size=size, media_type=media_type)
    if exchange_of(request).without_body:
        return Response(headers=answer)
    sent = part or ByteRange(0, size)
    if source.path is None:
        return _PiecesResponse(source, sent, status=_status(part), headers=answer)
    return FilePartResponse(source.path, sent, status=_status(part), headers=answer)


def redirect_response(
    request: Request, address: str, *, etag: str, headers: Mapping[str, str]
) -> Response:
    """Answer with the address of a file at another origin, and with all that is known of it.

    Clients that look with HEAD take it from here: they do not follow to another origin.
    """
    answer = {
        # The address is a credential that ends.
        "Cache-Control": "private, no-store",
        **headers,
        "ETag": f'"{etag}"',
        "Accept-Ranges": "bytes",
    }
    if has_version(request, answer["ETag"]):
        return Response(status_code=304, headers=answer)
    return Response(status_code=302, headers=answer | {"Location": address})


async def content_response(  # noqa: PLR0913 - as above
    request: Request,
    read: Callable[[], Awaitable[bytes]],
    *,
    size: int,
    etag: str,
    file_name: str,
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer the same with content that fits into memory; it is read only if it is sent."""
    answer = _headers(etag, file_name, media_type, headers)
    if has_version(request, answer["ETag"]):
        return Response(status_code=304, headers=answer)
    part = _requested_part(request, answer, size=size, media_type=media_type)
    if exchange_of(request).without_body:
        return Response(headers=answer)
    content = await read()
    if part is not None:
        content = content[part.start : part.end]
    return Response(content, status_code=_status(part), headers=answer)


def file_info_response(request: Request, headers: Mapping[str, str]) -> Response | None:
    """Answer a client that asks, as the JavaScript client does, how to download through Xet.

    None for all others, and where the headers of the file do not lead to Xet.
    """
    if "X-Xet-Hash" not in headers or _FILE_INFO not in request.headers.get("accept", ""):
        return None
    etag = headers["X-Linked-Etag"]
    info = {"hash": headers["X-Xet-Hash"], "etag": etag, "size": int(headers["X-Linked-Size"])}
    cache = {"Cache-Control": "private, no-store", "Vary": "Accept"}
    return JSONResponse(info, headers={**headers, **cache, "ETag": etag}, media_type=_FILE_INFO)


def content_disposition(file_name: str, media_type: str) -> str:
    """Return the header that tells a browser to show or to save a file, and under which name."""
    kind = "inline" if _INLINE_TYPES.fullmatch(media_type) else "attachment"
    plain = re.sub(r"""[^ -~]|["\\%]""", "_", file_name)
    # RFC 6266: who knows the second form takes it, for the first has only ASCII.
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"


def _headers(
    etag: str, file_name: str, media_type: str, own: Mapping[str, str] | None
) -> dict[str, str]:
    return {
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": _POLICY,
        "Content-Disposition": content_disposition(file_name, media_type),
        **(own or {}),
        "ETag": f'"{etag}"',
        "Accept-Ranges": "bytes",
    }


def _requested_part(
    request: Request, answer: dict[str, str], *, size: int, media_type: str
) -> ByteRange | None:
    """Return the part to send, None for all; complete the headers that tell of it."""
    part = None
    # RFC 9110, 13.1.5 and 14.2: a range counts for GET alone, and for the version it is of.
    if not exchange_of(request).without_body and _is_of_version(request, answer["ETag"]):
        part = parse_range(request.headers.get("range"), size=size)
    if part is not None:
        answer["Content-Range"] = part.header(size)
    answer |= {"Content-Type": media_type, "Content-Length": str(part.length if part else size)}
    return part


def _is_of_version(request: Request, etag: str) -> bool:
    return request.headers.get("if-range", etag) == etag


def _status(part: ByteRange | None) -> int:
    return 200 if part is None else 206


class FilePartResponse(Response):
    """Bytes of a file on the disk, sent by the kernel, or piece by piece where it cannot."""

    def __init__(
        self, path: Path, part: ByteRange, *, status: int, headers: Mapping[str, str]
    ) -> None:
        self._path = path
        self._part = part
        self.status_code = status
        self.background = None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = await asyncio.to_thread(os.open, self._path, os.O_RDONLY)
        try:
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            if (sender := find_sender(scope)) is not None:
                await self._hand_to_kernel(scope, send, sender, file)
            else:
                await self._send_pieces(receive, send, file)
        finally:
            os.close(file)

    async def _hand_to_kernel(
        self, scope: Scope, send: Send, sender: DirectSender, file: int
    ) -> None:
        sent = await sender.send_file(file, self._part.start, self._part.length)
        scope["exchange"].bytes_out += sent
        await send({"type": "http.response.body", "body": b""})

    async def _send_pieces(self, receive: Receive, send: Send, file: int) -> None:
        # A server may swallow what is sent to nobody; without a look all of it would be read.
        gone = asyncio.create_task(_wait_for_disconnect(receive))
        start, end = self._part.start, self._part.end
        try:
            while start < end and not gone.done():
                piece = await asyncio.to_thread(os.pread, file, min(_CHUNK, end - start), start)
                if not piece:
                    raise EOFError(f"{self._path.name} is shorter than it was said to be.")
                start += len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()


class _PiecesResponse(Response):
    """Bytes that are put together while they are sent."""

    def __init__(
        self, source: FileSource, part: ByteRange, *, status: int, headers: Mapping[str, str]
    ) -> None:
        self._source = source
        self._part = part
        self.status_code = status
        self.background = None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with closing(self._source.pieces(self._part.start, self._part.end)) as pieces:
            # Before the answer starts: whatever is missing is told by its status.
            first = await asyncio.to_thread(next, pieces, b"")
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            if (sender := find_sender(scope)) is not None:
                sent = await sender.send_pieces(chain([first], pieces), self._part.length)
                scope["exchange"].bytes_out += sent
            else:
                await _send_gathered(chain([first], pieces), receive, send)
            await send({"type": "http.response.body", "body": b""})


async def _send_gathered(pieces: Iterator[Buffer], receive: Receive, send: Send) -> None:
    gone = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        while (piece := await asyncio.to_thread(_gather, pieces)) and not gone.done():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        gone.cancel()


def _gather(pieces: Iterator[Buffer]) -> bytes:
    """Join pieces until they are worth a turn of the event loop; nothing at their end."""
    gathered: list[Buffer] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            break
    return b"".join(gathered)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
