"""Wire format of git over HTTP: pkt-line framing, decompression and size limit of bodies."""

import asyncio
import tempfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import IO

from hublet.repos.errors import MalformedRequest, RequestTooLarge

FLUSH = b"0000"
_LENGTH = 4
# The longest packet, without its own four digits and the byte that names the band.
_LARGEST_BAND = 65520 - _LENGTH - 1

# Zlib's flag for "a gzip header must be there".
_GZIP = 16 + zlib.MAX_WBITS
_PIECE = 1 << 16


def packet(data: bytes) -> bytes:
    return b"%04x%b" % (len(data) + _LENGTH, data)


def on_band(band: int, data: bytes) -> bytes:
    """Return data as packets of one of the three bands: 1 for data, 2 for people, 3 for errors."""
    return b"".join(
        packet(bytes([band]) + data[start : start + _LARGEST_BAND])
        for start in range(0, len(data), _LARGEST_BAND)
    )


class PacketReader:
    """Reads packets from bytes that arrive in pieces, then what follows them."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    async def read(self) -> bytes | None:
        """Return the next packet's data, None for a flush, which ends a list of packets."""
        try:
            length = int(await self._exactly(_LENGTH), 16)
        except ValueError:
            raise MalformedRequest("a packet begins with four hexadecimal digits") from None
        if length == 0:
            return None
        if length < _LENGTH:
            raise MalformedRequest(f"no packet has the length {length}")
        return await self._exactly(length - _LENGTH)

    async def rest(self) -> AsyncGenerator[bytes]:
        if self._left:
            yield self._left
            self._left = b""
        async for piece in self._pieces:
            yield piece

    async def peek(self, count: int) -> bytes:
        """Return the next bytes, or fewer at the end, and leave them to be read."""
        await self._fill(count)
        return self._left[:count]

    async def _exactly(self, count: int) -> bytes:
        if not await self._fill(count):
            raise MalformedRequest("it ends in the middle of a packet")
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    async def _fill(self, count: int) -> bool:
        while len(self._left) < count:
            piece = await anext(self._pieces, None)
            if piece is None:
                return False
            self._left += piece
        return True


async def decompress(pieces: AsyncIterator[bytes], encoding: str | None) -> AsyncGenerator[bytes]:
    """Undo the Content-Encoding; pieces are small, however well the body was compressed."""
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
            yield _unzip(unzip, left)
            left = unzip.unconsumed_tail
    if not unzip.eof:
        raise MalformedRequest("its gzip data ends too early")


def _unzip(unzip: "zlib._Decompress", data: bytes) -> bytes:
    try:
        return unzip.decompress(data, _PIECE)
    except zlib.error:
        raise MalformedRequest("its body is not the gzip data it claims to be") from None


async def limit_size(pieces: AsyncIterator[bytes], *, largest: int) -> AsyncGenerator[bytes]:
    seen = 0
    async for piece in pieces:
        seen += len(piece)
        if seen > largest:
            raise RequestTooLarge(largest)
        yield piece


async def spool_body(pieces: AsyncIterator[bytes]) -> IO[bytes]:
    """Return a temporary file with the whole body; it is gone when the caller closes it."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
    try:
        async for piece in pieces:
            await asyncio.to_thread(file.write, piece)
        await asyncio.to_thread(file.seek, 0)
    except BaseException:
        file.close()
        raise
    return file
