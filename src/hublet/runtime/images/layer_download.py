"""Download of one layer: resumed after a cut, verified, and fetched once by all who want it."""

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from hublet.core.dataclasses import dataclass
from hublet.core.outgoing import OutgoingFailed
from hublet.runtime.errors import CannotRun, RegistryUnavailable
from hublet.runtime.images import oci
from hublet.runtime.images.pulled_files import PartialFile, PulledFiles
from hublet.runtime.images.registry_client import RETRY_DELAYS
from hublet.runtime.launch_threads import run_in_launch_thread

if TYPE_CHECKING:
    from hublet.core.outgoing.streams import OutgoingStream

_PIECE_BYTES = 2**20
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")

# Opens a blob by its digest, from an offset on.
OpenBlob = Callable[[str, int], "AbstractAsyncContextManager[OutgoingStream]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSource:
    """Where a layer comes from, and who is told of it."""

    # Whose downloads go on with each other's parts.
    scope: str
    open_blob: OpenBlob
    # Fills the file from another place than the registry, if it can. Blocks.
    fill: Callable[[PartialFile], bool]
    # Is told how many bytes arrived.
    report: Callable[[int], None]


async def fetch_layer(
    files: PulledFiles, layer: oci.Descriptor, source: LayerSource, *, is_done: Callable[[], bool]
) -> bool:
    """Put a layer on this machine; return whether the registry sent it. Raises CannotRun.

    A cancelled or killed download leaves a part that the next one of the scope goes on with.
    """
    async with files.locked_layer(layer.digest, source.scope, is_done=is_done) as partial:
        if partial is None:
            return False
        is_filled = await run_in_launch_thread(source.fill, partial)
        if is_filled:
            source.report(_size_of(layer))
        else:
            await _fill(partial, layer, source.open_blob, source.report)
        files.note_fetched(source.scope, layer.digest)
        return not is_filled


async def _fill(
    partial: PartialFile,
    layer: oci.Descriptor,
    open_blob: OpenBlob,
    report: Callable[[int], None],
) -> None:
    algorithm = layer.digest.partition(":")[0]
    await run_in_launch_thread(partial.resume, algorithm)
    if partial.size > _size_of(layer):
        partial.restart(algorithm)
    report(partial.size)
    failures = 0
    while True:
        before = partial.size
        try:
            if partial.size < _size_of(layer):
                await _receive(partial, layer, open_blob, report)
            break
        except RegistryUnavailable as error:
            # A registry that cuts every download, but sends something, gets on.
            failures = 0 if partial.size > before else failures + 1
            if not error.is_passing or failures > len(RETRY_DELAYS):
                raise
            await asyncio.sleep(error.retry_after or RETRY_DELAYS[max(failures - 1, 0)])
    if not partial.complete(layer.digest):
        raise oci.DamagedImage(layer.digest)


def _size_of(layer: oci.Descriptor) -> int:
    if layer.size is None:
        raise CannotRun(f"The image does not say how long its layer {layer.digest} is.")
    return layer.size


async def _receive(
    partial: PartialFile,
    layer: oci.Descriptor,
    open_blob: OpenBlob,
    report: Callable[[int], None],
) -> None:
    async with open_blob(layer.digest, partial.size) as response:
        if partial.size and not _continues(response, partial.size):
            report(-partial.size)
            partial.restart(layer.digest.partition(":")[0])
        buffer = bytearray()
        try:
            async for piece in response.pieces():
                buffer += piece
                if partial.size + len(buffer) > _size_of(layer):
                    partial.restart(layer.digest.partition(":")[0])
                    raise oci.DamagedImage(layer.digest)
                if len(buffer) >= _PIECE_BYTES:
                    await _append(partial, buffer, report)
        except OutgoingFailed:
            # What arrived before a cut is not fetched again.
            await _append(partial, buffer, report)
            raise
        await _append(partial, buffer, report)
    if partial.size < _size_of(layer):
        raise RegistryUnavailable(f"The registry sends only a part of {layer.digest}.")


async def _append(partial: PartialFile, buffer: bytearray, report: Callable[[int], None]) -> None:
    await run_in_launch_thread(partial.append, bytes(buffer))
    report(len(buffer))
    buffer.clear()


def _continues(response: "OutgoingStream", start: int) -> bool:
    match = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
    return response.status == 206 and match is not None and int(match[1]) == start  # noqa: PLR2004
