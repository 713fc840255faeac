"""Archives of layers: tar, plain or compressed, read once from the start within bounds."""

import bz2
import gzip
import lzma
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import IO, Any, BinaryIO, cast

from hublet.runtime.errors import CannotRun

try:
    # Three times as fast as zlib, which it replaces; not every machine has it (decision 0071).
    from isal import igzip

    _open_gzip: Callable[[BinaryIO], Any] = igzip.open
except ImportError:
    _open_gzip = gzip.open

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Errors of reading an archive.
UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RecursionError,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    zstd.ZstdError,
)
# Limit of one read; tarfile reads only names and the like in one piece.
PIECE = 2**20
# 128 MiB of memory, the most that zstd uses unless it is told otherwise.
_WINDOW_LOG = 27


def _open_zstd(archive: BinaryIO) -> Any:
    return zstd.ZstdFile(archive, options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG})


_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": _open_gzip,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstd,
    # A file of zstd may begin with a frame that is skipped, of sixteen kinds.
    **{bytes([0x50 + kind]) + b"\x2a\x4d\x18": _open_zstd for kind in range(16)},
}


def members(archive: BinaryIO) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield the entries of a layer, by its first bytes and not by its name. Raises UNREADABLE."""
    start = archive.read(len(max(_OPENERS, key=len)))
    archive.seek(0)
    opener = next((_OPENERS[magic] for magic in _OPENERS if start.startswith(magic)), None)
    with closing(_ForwardReader(opener(archive) if opener else archive)) as pieces:
        file = tarfile.TarFile(fileobj=cast("IO[bytes]", pieces))
        while (member := file.next()) is not None:
            # It would remember all of them, and there may be a million.
            cast("Any", file).members.clear()
            yield file, member


class _ForwardReader:
    """A file for tarfile that is read once from its start, in pieces that fit into the memory."""

    name, mode = "image", "rb"

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._place = file, 0

    def read(self, size: int) -> bytes:
        if size > PIECE:
            raise CannotRun("The image has a name that is too long.")
        found = self._file.read(size)
        while len(found) < size and (more := self._file.read(size - len(found))):
            found += more
        self._place += len(found)
        return found

    def seek(self, place: int) -> int:
        while self._place < place:
            if not self.read(min(place - self._place, PIECE)):
                break
        if self._place != place:
            raise EOFError("it ends too early")
        return place

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        self._file.close()
