"""Unpacking of image layers, which are untrusted archives, each into a folder of its own."""

import json
import os
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

from hublet.runtime.errors import CannotRun
from hublet.runtime.images.layer_archive import PIECE, members

# The image specification, "Layer filesystem changeset": names that mark removed files. Other
# names that begin with the second are notes of aufs.
_WHITEOUT = ".wh."
_AUFS = ".wh..wh."
_OPAQUE = ".wh..wh..opq"
FOLDER_MODE = 0o755
_MAX_PATH, _MAX_NAME, _MAX_DEPTH, _MAX_LINKS = 3500, 255, 200, 40
# Bytes of a character, at most.
_CHARACTER = 4


@dataclass(slots=True)
class UnpackBudget:
    """Limits for all layers of one image together."""

    entries: int = 1_000_000
    size: int = 64 * 2**30

    def spend(self, *, entries: int, size: int) -> None:
        self.entries -= entries
        self.size -= size
        if size < 0 or self.size < 0 or self.entries < 0:
            raise CannotRun("The image is too large to be unpacked.")


@dataclass(slots=True, kw_only=True)
class LayerNotes:
    """What a layer does to those below it, in paths without links on the way."""

    entries: int = 0
    size: int = 0
    # Removed from the layers below it.
    whiteouts: list[str] = field(default_factory=list)
    # Folders that hide those below it.
    opaque: list[str] = field(default_factory=list)
    # Folders that only the names of other entries mention: they may be links below it.
    implied: list[str] = field(default_factory=list)
    # Second names of files in the layers below it.
    links: list[tuple[str, str]] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "LayerNotes":
        known = json.loads(text)
        return cls(**known | {"links": [(name, target) for name, target in known["links"]]})


def unpack(archive: BinaryIO, *, into: Path, budget: UnpackBudget) -> LayerNotes:
    """Unpack a layer on its own. Blocks. Raises CannotRun and UNREADABLE.

    Devices are skipped: a job has its own. Owners and set-user-id bits are dropped, so that no
    file gives anybody more rights.
    """
    layer = _LayerWriter(os.path.realpath(into))
    for file, member in members(archive):
        budget.spend(entries=1, size=member.size)
        layer.notes.entries += 1
        layer.notes.size += member.size
        layer.add(file, member)
    layer.finish()
    return layer.notes


def refuse_links(notes: LayerNotes) -> None:
    """Raise CannotRun for second names of files that no layer has."""
    for name, _ in notes.links:
        raise NoSuchFile(name)


class NoSuchFile(CannotRun):
    def __init__(self, name: str) -> None:
        super().__init__(f"The image has a second name of what is no file: {name}.")


class _LayerWriter:
    """A folder that is filled with the entries of one layer.

    Names are resolved inside the folder, as a job would see them. Nobody else writes to it.
    """

    def __init__(self, root: str) -> None:
        self.notes = LayerNotes()
        self._root = root
        # Parents in names, and the folders that they lead to.
        self._parents: dict[tuple[str, ...], str] = {}
        self._implied: set[str] = set()
        self._whiteouts: set[str] = set()
        self._opaque: set[str] = set()

    def add(self, file: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = split_name(member.name)
        if not parts:
            return
        parent = self._folder_of(parts[:-1])
        name = parts[-1]
        place = f"{parent}/{name}" if parent else name
        if name == _OPAQUE:
            self._opaque.add(parent)
        elif name.startswith(_WHITEOUT):
            self._note_whiteout(parent, name)
        elif member.isdir():
            self._make_folder(place)
            self._implied.discard(place)
        elif member.issym():
            self._replace(place, lambda path: os.symlink(member.linkname, path))
        elif member.islnk():
            self._link(place, member)
        elif member.isreg():
            self._replace(place, lambda path: _write(file, member, path))
        else:
            self._discard(place)

    def finish(self) -> None:
        """Note what the layer does to those below it, now that all its own entries are known."""
        for place in self._whiteouts:
            if self._is_folder(place):
                self._opaque.add(place)
            elif self._is_folder(os.path.dirname(place)) and not os.path.lexists(self._at(place)):
                self.notes.whiteouts.append(place)
        self.notes.whiteouts.sort()
        self.notes.opaque = sorted(filter(self._is_folder, self._opaque))
        self.notes.implied = sorted(filter(self._is_folder, self._implied))
        self.notes.links = [
            (name, target)
            for name, target in self.notes.links
            if not os.path.lexists(self._at(name)) and self._is_folder(os.path.dirname(name))
        ]

    def _at(self, place: str) -> str:
        return f"{self._root}/{place}"

    def _is_folder(self, place: str) -> bool:
        return os.path.isdir(self._at(place)) and not os.path.islink(self._at(place))

    def _folder_of(self, parts: tuple[str, ...]) -> str:
        """Return the folder that a path leads to, made where it is missing."""
        if (known := self._parents.get(parts)) is not None:
            return known
        if not parts:
            return ""
        above = self._folder_of(parts[:-1])
        place = f"{above}/{parts[-1]}" if above else parts[-1]
        if (target := self._read_link(place)) is None:
            self._imply(place)
        else:
            # A link may lead to links: step by step.
            place = resolve(split_target(above, target), self._read_link, make=self._imply)
        self._parents[parts] = place
        return place

    def _read_link(self, place: str) -> str | None:
        try:
            return os.readlink(self._at(place))
        except OSError:
            return None

    def _imply(self, place: str) -> None:
        if self._make_folder(place):
            self._implied.add(place)

    def _make_folder(self, place: str) -> bool:
        path = self._at(place)
        try:
            os.mkdir(path)
        except FileExistsError:
            if self._is_folder(place):
                return False
            self._discard(place)
            os.mkdir(path)
        os.chmod(path, FOLDER_MODE)
        return True

    def _note_whiteout(self, parent: str, name: str) -> None:
        removed = name.removeprefix(_WHITEOUT)
        if removed in {"", ".", ".."}:
            raise CannotRun(f"The image removes what has no name: {name}.")
        if not name.startswith(_AUFS):
            self._whiteouts.add(f"{parent}/{removed}" if parent else removed)

    def _link(self, place: str, member: tarfile.TarInfo) -> None:
        parts = split_name(member.linkname)
        parent = resolve(parts[:-1], self._read_link)
        source = f"{parent}/{parts[-1]}" if parent and parts else "".join(parts[-1:])
        if source == place:
            return
        if not os.path.lexists(self._at(source)):
            # In a layer below, or nowhere.
            self._discard(place)
            self.notes.links.append((place, source))
        elif self._is_folder(source):
            raise NoSuchFile(member.name)
        else:
            # Never through a link: its target may lie outside of the image.
            self._replace(place, lambda path: link_or_copy(self._at(source), path))

    def _replace(self, place: str, make: Callable[[str], None]) -> None:
        path = self._at(place)
        try:
            make(path)
        except FileExistsError:
            self._discard(place)
            make(path)

    def _discard(self, place: str) -> None:
        if self._is_folder(place):
            shutil.rmtree(self._at(place))
            self._parents.clear()
        elif os.path.lexists(self._at(place)):
            os.unlink(self._at(place))


def split_name(name: str) -> tuple[str, ...]:
    """Return the parts of a name in an archive. Raises CannotRun."""
    parts = tuple(part for part in name.split("/") if part not in {"", "."})
    if name.startswith("/") or ".." in parts:
        raise CannotRun(f"The image has a file that lies outside of it: {name}.")
    if len(parts) > _MAX_DEPTH or (
        len(name) * _CHARACTER > _MAX_NAME and _is_too_long(name, parts)
    ):
        raise CannotRun(f"The image has a name that is too long: {name[:100]}…")
    return parts


def _is_too_long(name: str, parts: tuple[str, ...]) -> bool:
    size = max((len(os.fsencode(part)) for part in parts), default=0)
    return len(os.fsencode(name)) > _MAX_PATH or size > _MAX_NAME


def split_target(above: str, target: str) -> tuple[str, ...]:
    """Return the way that a link in a folder leads, from the root."""
    way = target if target.startswith("/") else f"{above}/{target}"
    return tuple(part for part in way.split("/") if part not in {"", "."})


def resolve(
    parts: tuple[str, ...],
    read_link: Callable[[str], str | None],
    *,
    make: Callable[[str], None] = lambda _: None,
) -> str:
    """Follow the links on a path as if the root of the image were the root. Raises CannotRun."""
    done: list[str] = []
    left = list(reversed(parts))
    links = 0
    while left:
        part = left.pop()
        if part == "..":
            # Like the kernel: above the root there is the root.
            done = done[:-1]
            continue
        place = "/".join([*done, part])
        if (target := read_link(place)) is None:
            done.append(part)
            make(place)
            continue
        links += 1
        if links > _MAX_LINKS or len(left) > _MAX_DEPTH:
            raise CannotRun(f"The image has links that go round in circles: {'/'.join(parts)}.")
        if target.startswith("/"):
            done = []
        left += [each for each in reversed(target.split("/")) if each not in {"", "."}]
    return "/".join(done)


def link_or_copy(source: str, path: str) -> None:
    """Give a file a second name, or its copy one where the file system has no more of them."""
    try:
        os.link(source, path, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        shutil.copy2(source, path, follow_symlinks=False)


def _write(file: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        content = file.fileobj if member.sparse is None else file.extractfile(member)
        left = member.size
        while left and content is not None:
            if not (piece := content.read(min(left, PIECE))):
                raise EOFError("it ends too early")
            left -= len(piece)
            _write_all(fd, piece)
        os.fchmod(fd, (member.mode & 0o755) | 0o644)
        # Programs compare it, such as Python for compiled modules.
        os.utime(fd, (member.mtime, member.mtime))
    finally:
        os.close(fd)


def _write_all(fd: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(fd, view) :]
