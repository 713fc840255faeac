"""What a commit changes, and the tree that follows from it; only touched folders are built anew."""

from collections.abc import Iterator
from dataclasses import field

import pygit2

from hublet.core.light_dataclasses import dataclass
from hublet.repos.errors import EntryNotFound
from hublet.repos.git import attributes
from hublet.repos.git.errors import PathTaken
from hublet.repos.git.objects import (
    EXECUTABLE,
    FILE,
    FOLDER,
    Item,
    Items,
    parse_tree,
    tree_data,
)
from hublet.repos.git.trees import find_item
from hublet.repos.git.writing import ObjectWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A file that is added or replaced."""

    # The object that git holds: the file itself, or the pointer to it.
    oid: str
    # Of the content, also where git holds a pointer only.
    size: int
    is_lfs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    puts: dict[str, Put] = field(default_factory=dict)
    deleted_files: set[str] = field(default_factory=set)
    deleted_folders: set[str] = field(default_factory=set)
    # The new .gitattributes, where there is one: it decides on lines for files in LFS.
    attributes: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    tree: str
    # What the new files hold that was not there before.
    added_bytes: int


def apply(
    repository: pygit2.Repository, base: pygit2.Tree, changes: Changes, writer: ObjectWriter
) -> Applied:
    """Write the trees of a new commit on top of a base; deletions come before additions.

    What the changes do not fit to is refused: a file to delete that is not there, a file where
    a folder is, or the other way round.
    """
    root = _Node()
    for path in changes.deleted_files:
        root.at(path).deletes_file = True
    for path in changes.deleted_folders:
        root.at(path).deletes_folder = True
    puts = changes.puts | _attributes(base, changes, writer)
    for path, put in puts.items():
        root.at(path).put = put
    build = _Build(repository, writer)
    return Applied(tree=build.folder(base.id.raw, root, ""), added_bytes=build.added_bytes)


def _attributes(base: pygit2.Tree, changes: Changes, writer: ObjectWriter) -> dict[str, Put]:
    """Return a new .gitattributes when files in LFS need a line there."""
    large = [path for path, put in changes.puts.items() if put.is_lfs]
    if not large:
        return {}
    before = _attributes_before(base, changes)
    after = attributes.with_lfs(before.decode(errors="surrogateescape"), large)
    data = after.encode(errors="surrogateescape")
    if data == before:
        return {}
    return {attributes.FILE_NAME: Put(oid=writer.add("blob", data), size=len(data))}


def _attributes_before(base: pygit2.Tree, changes: Changes) -> bytes:
    if changes.attributes is not None:
        return changes.attributes
    found = find_item(base, attributes.FILE_NAME)
    is_deleted = attributes.FILE_NAME in changes.deleted_files
    return found.data if isinstance(found, pygit2.Blob) and not is_deleted else b""


class _Node:
    """What happens at one path, and below it."""

    __slots__ = ("children", "deletes_file", "deletes_folder", "put")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.deletes_file = False
        self.deletes_folder = False
        self.put: Put | None = None

    def at(self, path: str) -> "_Node":
        node = self
        for name in path.split("/"):
            node = node.children.setdefault(name, _Node())
        return node

    def first_put(self, path: str) -> str | None:
        """Return a path below this one where a file is added."""
        for name, child in self.children.items():
            below = f"{path}/{name}"
            if child.put is not None:
                return below
            if (found := child.first_put(below)) is not None:
                return found
        return None


class _Build:
    def __init__(self, repository: pygit2.Repository, writer: ObjectWriter) -> None:
        self._repository = repository
        self._writer = writer
        self.added_bytes = 0

    def folder(self, base: bytes | None, node: _Node, path: str) -> str:
        return self._writer.add("tree", tree_data(self._items(base, node, path)))

    def _items(self, base: bytes | None, node: _Node, path: str) -> Items:
        items = self._read(base)
        for name, child in node.children.items():
            key, at = name.encode(), f"{path}{name}"
            _delete(items, key, child, at)
            if child.put is not None:
                self._put(items, key, child.put, at)
            elif child.children:
                self._descend(items, key, child, at)
        return items

    def _read(self, oid: bytes | None) -> Items:
        if oid is None:
            return {}
        _, data = self._repository.odb.read(pygit2.Oid(raw=oid))
        return parse_tree(data)

    def _put(self, items: Items, key: bytes, put: Put, at: str) -> None:
        before = items.get(key)
        if before is not None and before.mode == FOLDER:
            raise PathTaken(at, by="folder")
        is_executable = before is not None and before.mode == EXECUTABLE
        after = Item(EXECUTABLE if is_executable else FILE, bytes.fromhex(put.oid))
        if before is None or before.oid != after.oid:
            self.added_bytes += put.size
        items[key] = after

    def _descend(self, items: Items, key: bytes, child: _Node, at: str) -> None:
        before = items.get(key)
        if before is not None and before.mode != FOLDER:
            if (added := child.first_put(at)) is not None:
                raise PathTaken(added, by="file", place=at)
            before = None
        below = self._items(before.oid if before else None, child, f"{at}/")
        if below:
            tree = self._writer.add("tree", tree_data(below))
            items[key] = Item(FOLDER, bytes.fromhex(tree))
        else:
            # Git has no empty folders.
            items.pop(key, None)


def _delete(items: Items, key: bytes, node: _Node, at: str) -> None:
    for wanted, is_folder in ((node.deletes_file, False), (node.deletes_folder, True)):
        if wanted:
            before = items.pop(key, None)
            if before is None or (before.mode == FOLDER) != is_folder:
                raise EntryNotFound(at)


def paths_above(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the outermost first."""
    position = path.find("/")
    while position != -1:
        yield path[:position]
        position = path.find("/", position + 1)
