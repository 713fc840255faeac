"""Bodies of git's requests: unpacked as they arrive, and held to a limit."""

import asyncio
import tempfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import IO

from hublet.repos.smart_http.errors import MalformedRequest, RequestTooLarge

# Zlib's word for "a gzip header must be there".
_GZIP = 16 + zlib.MAX_WBITS
_PIECE = 1 << 16


async def plain(pieces: AsyncIterator[bytes], encoding: str | None) -> AsyncGenerator[bytes]:
    """Undo the Content-Encoding; a piece never grows much, however well it was packed."""
    if encoding in {None, "", "identity"}:
        async for piece in pieces:
            yield piece
        return
    if encoding not in {"gzip", "x-gzip"}:
        raise MalformedRequest("its Content-Encoding is gzip or none")
    unzip = zlib.decompressobj(_GZIP)
    async for piece in pieces:
        left = piece
        while left and not unzip.eof:
            yield _unzipped(unzip, left)
            left = unzip.unconsumed_tail
    if not unzip.eof:
        raise MalformedRequest("its gzip data ends too early")


def _unzipped(unzip: "zlib._Decompress", data: bytes) -> bytes:
    try:
        return unzip.decompress(data, _PIECE)
    except zlib.error:
        raise MalformedRequest("its body is not the gzip data it claims to be") from None


async def limited(pieces: AsyncIterator[bytes], *, largest: int) -> AsyncGenerator[bytes]:
    seen = 0
    async for piece in pieces:
        seen += len(piece)
        if seen > largest:
            raise RequestTooLarge(largest)
        yield piece


async def spooled(pieces: AsyncIterator[bytes]) -> IO[bytes]:
    """Return a file that holds everything; whoever gets it closes it, and it is gone."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
    try:
        async for piece in pieces:
            await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(file.seek, 0)
    except BaseException:
        file.close()
        raise
    return file
