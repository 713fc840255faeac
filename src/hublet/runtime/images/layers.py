"""Unpacking of image layers, which are untrusted archives."""

import bz2
import gzip
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from hublet.runtime.errors import CannotRun

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
)
# The image specification, "Layer filesystem changeset": names that mark removed files.
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
# Limit of one read; tarfile reads only names and the like in one piece.
_MAX_READ = 2**20
_OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"


@dataclass(slots=True)
class UnpackBudget:
    """Limits for all layers of one image together."""

    entries: int = 1_000_000
    size: int = 64 * 2**30

    def spend(self, member: tarfile.TarInfo) -> None:
        self.entries -= 1
        self.size -= member.size
        if member.size < 0 or self.size < 0 or self.entries < 0:
            raise CannotRun("The image is too large to be unpacked.")


def unpack(archive: BinaryIO, *, into: Path, budget: UnpackBudget) -> None:
    """Unpack a layer over those below it. Blocks. Raises CannotRun and UNREADABLE.

    Devices are skipped: a job has its own. Owners and set-user-id bits are dropped, so that no
    file gives anybody more rights.
    """
    layer = _Layer(root=Path(os.path.realpath(into)))
    for file, member in _members(archive):
        budget.spend(member)
        place = layer.place_of(member.name)
        if place == layer.root:
            continue
        if place.name.startswith(_WHITEOUT):
            layer.remove(place)
        else:
            layer.add(file, member, place)


def make_folder(root: Path, path: str) -> None:
    """Make a folder of an image that its layers may lack. Raises CannotRun and UNREADABLE."""
    layer = _Layer(root=Path(os.path.realpath(root)))
    place = layer.place_of(path.lstrip("/"))
    if not place.exists() and not place.is_symlink():
        layer.make_folder(place)


def _members(archive: BinaryIO) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    start = archive.read(len(max(_OPENERS, key=len)))
    archive.seek(0)
    if start.startswith(_ZSTANDARD):
        raise CannotRun("The image has zstd layers, which cannot be unpacked: make it with gzip.")
    opener = next((_OPENERS[magic] for magic in _OPENERS if start.startswith(magic)), None)
    plain = opener(archive) if opener else archive
    with closing(_BoundedReader(plain)) as pieces:
        file = tarfile.TarFile(fileobj=cast("IO[bytes]", pieces))
        while (member := file.next()) is not None:
            yield file, member


@dataclass(slots=True)
class _BoundedReader:
    """A file that refuses to be read in pieces so large that they would fill the memory."""

    _file: BinaryIO
    name: str = "image"
    mode: str = "rb"

    def read(self, size: int) -> bytes:
        if size > _MAX_READ:
            raise CannotRun("The image has a name that is too long.")
        return self._file.read(size)

    def seek(self, place: int) -> int:
        return self._file.seek(place)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True, kw_only=True)
class _Layer:
    root: Path
    # Paths of this layer: its whiteouts remove files of the layers below it only.
    _added: set[Path] = field(default_factory=set)

    def place_of(self, name: str) -> Path:
        path = PurePosixPath(name)
        if not path.parts:
            return self.root
        # A link that was unpacked before may redirect a harmless name to anywhere.
        parent = Path(os.path.realpath((self.root / path).parent))
        if path.is_absolute() or ".." in path.parts or not parent.is_relative_to(self.root):
            raise CannotRun(f"The image has a file that lies outside of it: {name}.")
        return parent / path.name

    def remove(self, whiteout: Path) -> None:
        if whiteout.name == _OPAQUE:
            self._clear_folder(whiteout.parent)
            return
        name = whiteout.name.removeprefix(_WHITEOUT)
        if name in {"", ".", ".."}:
            raise CannotRun(f"The image removes what has no name: {whiteout.name}.")
        self._clear(whiteout.with_name(name))

    def add(self, file: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
        self.make_folder(place.parent)
        self._note_added(place)
        if member.isdir():
            self.make_folder(place)
            return
        _discard(place)
        if member.issym():
            place.symlink_to(member.linkname)
        elif member.islnk():
            self._link(member, place)
        elif member.isreg():
            _write(file, member, place)

    def _link(self, member: tarfile.TarInfo, place: Path) -> None:
        source = self.place_of(member.linkname)
        if not source.is_symlink() and not source.is_file():
            raise CannotRun(f"The image has a second name of what is no file: {member.name}.")
        # Never through a link: its target may lie outside of the image.
        os.link(source, place, follow_symlinks=False)

    def make_folder(self, folder: Path) -> None:
        if folder.is_dir() and not folder.is_symlink():
            return
        if folder.parent != folder:
            self.make_folder(folder.parent)
        _discard(folder)
        folder.mkdir()
        folder.chmod(0o755)

    def _note_added(self, place: Path) -> None:
        while place not in self._added and place != self.root:
            self._added.add(place)
            place = place.parent

    def _clear(self, place: Path) -> None:
        if place not in self._added:
            _discard(place)
        else:
            self._clear_folder(place)

    def _clear_folder(self, folder: Path) -> None:
        if folder.is_dir() and not folder.is_symlink():
            for child in list(folder.iterdir()):
                self._clear(child)


def _discard(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _write(file: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    content = file.extractfile(member)
    with place.open("xb") as written:
        if content is not None:
            shutil.copyfileobj(content, written)
    place.chmod((member.mode & 0o755) | 0o644)
    # Programs compare it, such as Python for compiled modules.
    os.utime(place, (member.mtime, member.mtime))
