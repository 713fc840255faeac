"""Object writer: makes git objects durable before anything points to them.

Measured with 1,000 small files: libgit2 with its own fsync 1.16 s, files written and synced by
hand 0.77 s, one pack 0.01 s. For the three objects of a small commit: 3.0, 1.2 and 2.6 ms. So a
few objects become files, and many become a pack.
"""

import os
import zlib
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from hublet.core.ids import new_object_id
from hublet.repos.git.objects import ObjectKind, header_of, oid_of
from hublet.repos.git.packs import FULL_PACK, WORKSPACE_SUFFIX, PackWriter, sync_folder

MOST_LOOSE_OBJECTS = 32
MOST_LOOSE_BYTES = 1 << 20

_FAST = 1
_PRIVATE, _READABLE = 0o600, 0o444


class ObjectWriter:
    """Collects objects; `finish` makes them visible and durable.

    An object that exists already is written all the same: as long as nothing points to it, it may
    just be removed. The writer can be used again after `finish`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Several nodes share packs only.
        self._most_loose = 0 if folder.suffix == WORKSPACE_SUFFIX else MOST_LOOSE_OBJECTS
        self._waiting: dict[str, tuple[ObjectKind, bytes]] = {}
        self._bytes = 0
        self._pack: PackWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

    def add(self, kind: ObjectKind, data: bytes) -> str:
        """Add an object; return its id."""
        name = oid_of(kind, data)
        if self._pack is not None:
            self._add_to_pack(kind, name, data)
        elif name not in self._waiting:
            self._waiting[name] = (kind, data)
            self._bytes += len(data)
            if len(self._waiting) > self._most_loose or self._bytes > MOST_LOOSE_BYTES:
                self._begin_pack()
        return name

    def finish(self) -> None:
        if self._pack is not None:
            self._pack.finish()
            self._pack = None
        elif self._waiting:
            _write_loose(f"{self._folder}/objects", self._waiting)
        self._forget()

    @property
    def has_file(self) -> bool:
        """Whether `discard` has something to remove."""
        return self._pack is not None

    def discard(self) -> None:
        if self._pack is not None:
            self._pack.discard()
            self._pack = None
        self._forget()

    def _begin_pack(self) -> None:
        waiting = self._waiting
        self._pack = PackWriter(self._folder)
        self._forget()
        for name, (kind, data) in waiting.items():
            self._pack.add(kind, name, data)

    def _add_to_pack(self, kind: ObjectKind, name: str, data: bytes) -> None:
        assert self._pack is not None  # noqa: S101 - the only caller looked
        if self._pack.size > FULL_PACK:
            self._pack.finish()
            self._pack = PackWriter(self._folder)
        self._pack.add(kind, name, data)

    def _forget(self) -> None:
        self._waiting = {}
        self._bytes = 0


def _write_loose(objects: str, waiting: dict[str, tuple[ObjectKind, bytes]]) -> None:
    # Strings and bare descriptors: `pathlib` and `tempfile` cost more than all that the disk does.
    touched = {objects}
    for name, (kind, data) in waiting.items():
        folder = f"{objects}/{name[:2]}"
        target = f"{folder}/{name[2:]}"
        touched.add(folder)
        try:
            # As git does: a new modification time protects the object from pruning.
            os.utime(target)
        except FileNotFoundError:
            packed = zlib.compress(header_of(kind, len(data)) + data, _FAST)
            _write_file(folder, target, packed)
    for folder in touched:
        sync_folder(folder)


def _write_file(folder: str, target: str, packed: bytes) -> None:
    descriptor, path = _open_new(folder)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            while packed:
                packed = packed[file.write(packed) :]
            os.fsync(descriptor)
            os.fchmod(descriptor, _READABLE)
        os.replace(path, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise


def _open_new(folder: str) -> tuple[int, str]:
    # Git itself removes files of such names, which a process that dies here leaves behind.
    path = f"{folder}/tmp_obj_{new_object_id()}"  # noqa: S108 - beside the objects
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, _PRIVATE), path
    except FileNotFoundError:
        # Most of the 256 folders are there.
        with suppress(FileExistsError):
            os.mkdir(folder)
        return os.open(path, flags, _PRIVATE), path
