"""Pack writer: many objects in one file, so that they are safe on the disk with two fsyncs.

The format is git's own (gitformat-pack): each object deflated on its own, no deltas; `git gc`
packs them better later. The index is of version 2, with offsets of 31 bits only.
"""

import hashlib
import os
import struct
import tempfile
import zlib
from pathlib import Path

from hublet.repos.git.objects import ObjectKind

# How the folder of a workspace ends. What is written to one is uploaded, so it need not survive here.
WORKSPACE_SUFFIX = ".work"

# A pack that has grown beyond this takes no more, so every offset fits into the index.
FULL_PACK = 1 << 30

_TYPES: dict[ObjectKind, int] = {"commit": 1, "tree": 2, "blob": 3}
_FAST = 1
_CHUNK = 1 << 20


class PackWriter:
    """Pack under construction; git sees it only after `finish`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "objects" / "pack"
        self._is_durable = folder.suffix != WORKSPACE_SUFFIX
        self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed by finish or discard
            dir=self._folder, prefix="tmp_pack_", delete=False
        )
        # By object id: the checksum of the packed data, and its offset.
        self._index: dict[bytes, tuple[int, int]] = {}
        self._file.write(_pack_header(0))
        self.size = self._file.tell()

    def add(self, kind: ObjectKind, name: str, data: bytes) -> None:
        key = bytes.fromhex(name)
        if key in self._index:
            return
        packed = _entry_header(_TYPES[kind], len(data)) + zlib.compress(data, _FAST)
        self._file.write(packed)
        self._index[key] = (zlib.crc32(packed), self.size)
        self.size += len(packed)

    def finish(self) -> None:
        """Make the pack durable and visible; its index comes last, because git looks for that."""
        checksum = self._seal()
        target = self._folder / f"pack-{checksum.hex()}.pack"
        index = self._write_index(checksum)
        pack = Path(self._file.name)
        for path in (pack, index):
            path.chmod(0o444)
        pack.replace(target)
        index.replace(target.with_suffix(".idx"))
        if self._is_durable:
            sync_folder(self._folder)

    def _write_index(self, checksum: bytes) -> Path:
        with tempfile.NamedTemporaryFile(
            dir=self._folder, prefix="tmp_idx_", delete=False
        ) as index:
            try:
                index.write(_index_data(self._index, checksum))
                index.flush()
                self._sync(index.fileno())
            except BaseException:
                Path(index.name).unlink()
                raise
        return Path(index.name)

    def discard(self) -> None:
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)

    def _seal(self) -> bytes:
        """Write the number of objects and the checksum; return the checksum."""
        self._file.seek(0)
        self._file.write(_pack_header(len(self._index)))
        self._file.flush()
        digest = hashlib.sha1(usedforsecurity=False)
        with Path(self._file.name).open("rb") as written:
            while data := written.read(_CHUNK):
                digest.update(data)
        self._file.seek(0, os.SEEK_END)
        self._file.write(digest.digest())
        self._file.flush()
        self._sync(self._file.fileno())
        self._file.close()
        return digest.digest()

    def _sync(self, descriptor: int) -> None:
        if self._is_durable:
            os.fsync(descriptor)


def sync_folder(folder: Path | str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pack_header(count: int) -> bytes:
    return struct.pack(">4sII", b"PACK", 2, count)


def _entry_header(kind: int, size: int) -> bytes:
    # Four bits of the size in the first byte, seven in each further one; the top bit: more follow.
    first, rest = (kind << 4) | (size & 15), size >> 4
    header = bytearray()
    while rest:
        header.append(first | 128)
        first, rest = rest & 127, rest >> 7
    header.append(first)
    return bytes(header)


def _index_data(objects: dict[bytes, tuple[int, int]], checksum: bytes) -> bytes:
    names = sorted(objects)
    counts = [0] * 256
    for name in names:
        counts[name[0]] += 1
    fan_out, total = [], 0
    for count in counts:
        total += count
        fan_out.append(total)
    data = b"".join(
        (
            b"\xfftOc\x00\x00\x00\x02",
            struct.pack(">256I", *fan_out),
            *names,
            struct.pack(f">{len(names)}I", *(objects[name][0] for name in names)),
            struct.pack(f">{len(names)}I", *(objects[name][1] for name in names)),
            checksum,
        )
    )
    return data + hashlib.sha1(data, usedforsecurity=False).digest()
