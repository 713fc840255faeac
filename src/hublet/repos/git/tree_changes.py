"""Tree changes of a commit: builds the new trees, and of these only the folders that change."""

from dataclasses import field

import pygit2
from pygit2.enums import FileMode

from hublet.core.dataclasses import dataclass
from hublet.repos.errors import EntryNotFound, PathTakenInTree
from hublet.repos.git import patterns
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.objects import (
    EXECUTABLE,
    FILE,
    FOLDER,
    TreeItem,
    TreeItems,
    parse_tree,
    tree_data,
)
from hublet.repos.git.trees import find_item


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePut:
    """A file that is added or replaced."""

    # The object that git holds: the file itself, or the pointer to it.
    oid: str
    # Of the content, also where git holds a pointer only.
    size: int
    is_lfs: bool = False
    # The path of a file that it replaces under another name: it stays executable.
    moved_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeChanges:
    puts: dict[str, FilePut] = field(default_factory=dict)
    deleted_files: set[str] = field(default_factory=set)
    deleted_folders: set[str] = field(default_factory=set)
    # The new .gitattributes, where there is one: it decides on lines for files in LFS.
    attributes: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChanges:
    tree: str
    # The size of the files that are new or changed.
    added_bytes: int


def apply_changes(
    repository: pygit2.Repository, base: pygit2.Tree, changes: TreeChanges, writer: ObjectWriter
) -> AppliedChanges:
    """Write the trees of a new commit on top of a base; deletions come before additions.

    Refuses to delete what is not there, and to put a file where a folder is or a folder
    where a file is.
    """
    root = _PathNode()
    for path in changes.deleted_files:
        root.at(path).deletes_file = True
    for path in changes.deleted_folders:
        root.at(path).deletes_folder = True
    puts = changes.puts | _updated_attributes(base, changes, writer)
    for path, put in puts.items():
        root.at(path).put = put
    build = _TreeBuilder(repository, base, writer)
    return AppliedChanges(tree=build.folder(base.id.raw, root, ""), added_bytes=build.added_bytes)


def _updated_attributes(
    base: pygit2.Tree, changes: TreeChanges, writer: ObjectWriter
) -> dict[str, FilePut]:
    """Return a new .gitattributes when files in LFS need a line there."""
    large = [path for path, put in changes.puts.items() if put.is_lfs]
    if not large:
        return {}
    before = _current_attributes(base, changes)
    after = patterns.add_lfs_lines(before.decode(errors="surrogateescape"), large)
    data = after.encode(errors="surrogateescape")
    if data == before:
        return {}
    return {patterns.GIT_ATTRIBUTES_FILE: FilePut(oid=writer.add("blob", data), size=len(data))}


def _current_attributes(base: pygit2.Tree, changes: TreeChanges) -> bytes:
    if changes.attributes is not None:
        return changes.attributes
    found = find_item(base, patterns.GIT_ATTRIBUTES_FILE)
    is_deleted = patterns.GIT_ATTRIBUTES_FILE in changes.deleted_files
    return found.data if isinstance(found, pygit2.Blob) and not is_deleted else b""


class _PathNode:
    """The changes at one path, and below it."""

    __slots__ = ("children", "deletes_file", "deletes_folder", "put")

    def __init__(self) -> None:
        self.children: dict[str, _PathNode] = {}
        self.deletes_file = False
        self.deletes_folder = False
        self.put: FilePut | None = None

    def at(self, path: str) -> "_PathNode":
        node = self
        for name in path.split("/"):
            node = node.children.setdefault(name, _PathNode())
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


class _TreeBuilder:
    def __init__(
        self, repository: pygit2.Repository, base: pygit2.Tree, writer: ObjectWriter
    ) -> None:
        self._repository = repository
        self._base = base
        self._writer = writer
        self.added_bytes = 0

    def folder(self, base: bytes | None, node: _PathNode, path: str) -> str:
        return self._writer.add("tree", tree_data(self._items(base, node, path)))

    def _items(self, base: bytes | None, node: _PathNode, path: str) -> TreeItems:
        items = self._read(base)
        for name, child in node.children.items():
            key, at = name.encode(), f"{path}{name}"
            _delete(items, key, child, at)
            if child.put is not None:
                self._put(items, key, child.put, at)
            elif child.children:
                self._descend(items, key, child, at)
        return items

    def _read(self, oid: bytes | None) -> TreeItems:
        if oid is None:
            return {}
        _, data = self._repository.odb.read(pygit2.Oid(raw=oid))
        return parse_tree(data)

    def _put(self, items: TreeItems, key: bytes, put: FilePut, at: str) -> None:
        before = items.get(key)
        if before is not None and before.mode == FOLDER:
            raise PathTakenInTree(at, by="folder")
        is_executable = before is not None and before.mode == EXECUTABLE
        if put.moved_from is not None:
            moved = find_item(self._base, put.moved_from)
            is_executable = moved is not None and moved.filemode == FileMode.BLOB_EXECUTABLE
        after = TreeItem(EXECUTABLE if is_executable else FILE, bytes.fromhex(put.oid))
        if before is None or before.oid != after.oid:
            self.added_bytes += put.size
        items[key] = after

    def _descend(self, items: TreeItems, key: bytes, child: _PathNode, at: str) -> None:
        before = items.get(key)
        if before is not None and before.mode != FOLDER:
            if (added := child.first_put(at)) is not None:
                raise PathTakenInTree(added, by="file", taken=at)
            before = None
        below = self._items(before.oid if before else None, child, f"{at}/")
        if below:
            tree = self._writer.add("tree", tree_data(below))
            items[key] = TreeItem(FOLDER, bytes.fromhex(tree))
        else:
            # Git has no empty folders.
            items.pop(key, None)


def _delete(items: TreeItems, key: bytes, node: _PathNode, at: str) -> None:
    # A deleted file may be a folder: the public client tells them apart by a slash at the end, which
    # people forget.
    if node.deletes_file and items.pop(key, None) is None:
        raise EntryNotFound(at)
    if node.deletes_folder:
        before = items.pop(key, None)
        if before is None or before.mode != FOLDER:
            raise EntryNotFound(at)
