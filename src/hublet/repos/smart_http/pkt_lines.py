"""Git's packets: four hexadecimal digits of length, then the data."""

from collections.abc import AsyncGenerator, AsyncIterator

from hublet.repos.smart_http.errors import MalformedRequest

FLUSH = b"0000"
_LENGTH = 4
# With its own four digits no packet is longer; one byte of it names the band.
_LARGEST_BAND = 65520 - _LENGTH - 1


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
