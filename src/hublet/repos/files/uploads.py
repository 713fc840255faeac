"""Bytes on their way from a request to the folder of blobs: memory stays small, whatever comes."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hublet.repos.blobs.folder import Spool
from hublet.repos.files.errors import FileTooLarge

# So much is gathered before a thread writes it down.
_GATHERED = 1 << 20


@asynccontextmanager
async def spooled(
    chunks: AsyncIterable[bytes], data_dir: Path, *, largest: int
) -> AsyncIterator[Spool]:
    """Write what arrives to a spool that vanishes afterwards, unless it was kept."""
    spool = await asyncio.to_thread(Spool, data_dir)
    try:
        await _fill(spool, chunks, largest=largest)
        yield spool
    finally:
        await asyncio.to_thread(spool.close)


async def _fill(spool: Spool, chunks: AsyncIterable[bytes], *, largest: int) -> None:
    gathered = bytearray()
    async for chunk in chunks:
        gathered += chunk
        if spool.size + len(gathered) > largest:
            raise FileTooLarge(largest)
        if len(gathered) >= _GATHERED:
            await asyncio.to_thread(spool.write, gathered)
            gathered = bytearray()
    await asyncio.to_thread(spool.write, gathered)
