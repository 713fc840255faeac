"""Stack of unpacked layers: what lies where, a layer that needs those below it, one merged root."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from hublet.core.dataclasses import dataclass
from hublet.runtime.images.layers import (
    FOLDER_MODE,
    LayerNotes,
    NoSuchFile,
    link_or_copy,
    resolve,
    split_name,
)

# Marks of the overlay file system (Documentation/filesystems/overlayfs.rst in the kernel), in the
# form that needs no rights: with the mount option userxattr.
_OPAQUE_MARK = "user.overlay.opaque"
_WHITEOUT_MARK = stat.S_IFCHR | 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    # Folder with its files.
    root: Path
    notes: LayerNotes


class LayerStack:
    """Layers on top of each other; the last one is the uppermost."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._layers = [_LayerView(layer) for layer in reversed(tuple(layers))]

    def resolve(self, path: str) -> str:
        """Return the same path without links on the way, or at its end. Raises CannotRun."""
        return resolve(split_name(path.lstrip("/")), self.read_link)

    def find(self, place: str) -> Path | None:
        """Return the file or folder of a path that has no links on the way."""
        for layer in self._layers:
            if (found := layer.find(place)) is not None:
                return found
            if layer.hides(place):
                return None
        return None

    def read_link(self, place: str) -> str | None:
        found = self.find(place)
        return os.readlink(found) if found is not None and found.is_symlink() else None


class _LayerView:
    def __init__(self, layer: Layer) -> None:
        self._root = os.fspath(layer.root)
        self._whiteouts, self._opaque = set(layer.notes.whiteouts), set(layer.notes.opaque)

    def find(self, place: str) -> Path | None:
        """Return what the layer has itself; never through a link, which may lead anywhere."""
        if place in self._whiteouts or any(map(self._is_in_the_way, _folders_above(place))):
            return None
        found = Path(self._root, place)
        return found if os.path.lexists(found) else None

    def hides(self, place: str) -> bool:
        """Tell whether a path of the layers below is not seen through this layer."""
        above = _folders_above(place)
        return (
            not self._whiteouts.isdisjoint([place, *above])
            or not self._opaque.isdisjoint(["", *above])
            or any(map(self._is_in_the_way, above))
        )

    def _is_in_the_way(self, place: str) -> bool:
        """Tell whether the layer has something else where a folder would have to be."""
        path = f"{self._root}/{place}"
        return os.path.islink(path) or (os.path.lexists(path) and not os.path.isdir(path))


def _folders_above(place: str) -> list[str]:
    """Return all folders on the way to a place, from above."""
    parts = place.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


class Rebase:
    """The layer that another one becomes above certain layers.

    A tool that did not see the layers below may name files through links in them, and second
    names of files in them.
    """

    def __init__(self, layer: Layer, below: LayerStack) -> None:
        self._layer, self._below = layer, below
        self._own, self._implied = _LayerView(layer), set(layer.notes.implied)

    @cached_property
    def moves(self) -> dict[str, str]:
        """Return folders of the layer that are links below it, and where those lead."""
        resolved = {
            place: resolve(split_name(place), self._read_link)
            for place in self._layer.notes.implied
        }
        return {place: found for place, found in resolved.items() if found != place}

    def _read_link(self, place: str) -> str | None:
        if (own := self._own.find(place)) is None or place in self._implied:
            return self._below.read_link(place)
        return os.readlink(own) if own.is_symlink() else None

    def is_needed(self) -> bool:
        return bool(self.moves or self._layer.notes.links)

    def write(self, into: Path) -> LayerNotes:
        """Fill a folder with the layer as it is above the others. Raises CannotRun and OSError."""
        old, tree = self._layer.notes, _TreeWriter(into)
        for source, place in _walk(self._layer.root):
            tree.add(source, self._moved(place))
        for name, target in old.links:
            tree.link(self._target(into, name, target), self._moved(name))
        return LayerNotes(
            entries=old.entries,
            size=old.size,
            whiteouts=[self._moved(place) for place in old.whiteouts],
            opaque=[self._moved(place) for place in old.opaque],
            implied=[place for place in old.implied if place not in self.moves],
        )

    def _moved(self, place: str) -> str:
        for folder in sorted(self.moves, key=len, reverse=True):
            if place == folder or place.startswith(f"{folder}/"):
                return f"{self.moves[folder]}{place.removeprefix(folder)}".lstrip("/")
        return place

    def _target(self, into: Path, name: str, target: str) -> Path:
        """Return the file of another name, which may be a second name that was just made."""
        parts = split_name(target)
        place = "/".join(filter(None, [resolve(parts[:-1], self._read_link), parts[-1]]))
        made = _LayerView(Layer(root=into, notes=LayerNotes())).find(place)
        found = made or self._below.find(place)
        if found is None or (found.is_dir() and not found.is_symlink()):
            raise NoSuchFile(name)
        return found


def merge(layers: Sequence[Layer], *, into: Path) -> None:
    """Fill a folder with what a job sees of layers. Blocks. Raises OSError.

    Files are hard links: whoever wrote to one would change the layer.
    """
    for layer in layers:
        tree = _TreeWriter(into)
        for place in (*layer.notes.whiteouts, *layer.notes.opaque):
            tree.remove(place)
        for source, place in _walk(layer.root):
            tree.add(source, place)


class _TreeWriter:
    """A folder that is filled from layers; nothing is written or removed through a link."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root)
        self._folders = {""}

    def add(self, source: os.DirEntry[str], place: str) -> None:
        if source.is_dir(follow_symlinks=False):
            self.make_folder(place)
        else:
            self.link(Path(source.path), place)

    def link(self, source: Path, place: str) -> None:
        self.make_folder(place.rpartition("/")[0])
        try:
            link_or_copy(os.fspath(source), f"{self._root}/{place}")
        except FileExistsError:
            self.remove(place)
            link_or_copy(os.fspath(source), f"{self._root}/{place}")

    def make_folder(self, place: str) -> None:
        if place in self._folders:
            return
        self.make_folder(place.rpartition("/")[0])
        path = f"{self._root}/{place}"
        if os.path.islink(path) or not os.path.isdir(path):
            self.remove(place)
            os.mkdir(path)
            os.chmod(path, FOLDER_MODE)
        self._folders.add(place)

    def remove(self, place: str) -> None:
        if any(os.path.islink(f"{self._root}/{each}") for each in _folders_above(place)):
            return
        path = f"{self._root}/{place}"
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
            self._folders = {""}
        elif os.path.lexists(path):
            os.unlink(path)


def mark(layer: Layer) -> None:
    """Mark in a layer what it hides below it, as the overlay file system reads it. Raises OSError."""
    for place in layer.notes.whiteouts:
        # A whiteout in a folder that nothing else of the layer is in.
        if not os.path.lexists(layer.root / place):
            os.mknod(layer.root / place, _WHITEOUT_MARK, os.makedev(0, 0))
    for place in layer.notes.opaque:
        os.setxattr(layer.root / place, _OPAQUE_MARK, b"y")


def add_folder(root: Path, place: str) -> None:
    """Make a folder and those above it, open to everybody whatever the umask is."""
    path = root
    for part in PurePosixPath(place).parts:
        path /= part
        if not path.is_dir():
            path.mkdir()
            path.chmod(FOLDER_MODE)


def _walk(root: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield what lies in a layer, folders before what is in them, without the marks."""
    left = [(str(root), "")]
    while left:
        folder, prefix = left.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                place = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    left.append((entry.path, f"{place}/"))
                elif not entry.is_symlink() and not entry.is_file():
                    continue
                yield entry, place
