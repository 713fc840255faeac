"""Trees of a commit: folders and files, read straight from git's objects.

Everything here blocks on the disk; call it from a thread.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Literal

import pygit2
from pygit2.enums import FileMode

from hublet.core.dataclasses import dataclass
from hublet.repos.errors import EntryNotFound, RevisionNotFound
from hublet.repos.git import bare_repos
from hublet.repos.git.objects import EXECUTABLE, FILE, FOLDER, LINK, SUBMODULE, TreeItem

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"
_POINTER_PATTERN = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,19})\n"
)
_TREE_ITEM = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
# The last one is of git's first years.
_MODES = (FILE, FOLDER, EXECUTABLE, LINK, SUBMODULE, b"100664")
# No pointer is smaller or larger, so only blobs of these sizes are read.
POINTER_SIZES = range(len(POINTER % (b"0" * 64, 0)), len(POINTER % (b"0" * 64, 10**18)) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LfsPointer:
    """The content that a pointer file points to."""

    sha256: str
    size: int
    pointer_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GitEntry:
    """A file or a folder; of a file in LFS, `size` is that of its content, `oid` the pointer's."""

    path: str
    type: Literal["file", "directory"]
    oid: str
    size: int = 0
    lfs: LfsPointer | None = None
    # A symbolic link: its content is the path that it leads to.
    is_link: bool = False


def list_tree(
    folder: Path,
    commit: str,
    *,
    path: str = "",
    recursive: bool,
    after: str = "",
    limit: int | None = None,
) -> list[GitEntry]:
    """Return the entries below a folder, in git's order, each folder before its entries.

    `after` is the path of the last entry of the page before. Only the subtrees that the page
    needs are read, so a page costs the same wherever it begins.
    """
    repository = _open(folder, commit)
    top = _find(repository, commit, path) if path else _root(repository, commit)
    if top is None or top.mode != FOLDER:
        raise EntryNotFound(path, commit=commit)
    start = f"{path}/" if path else ""
    found = _walk(repository, top.oid, start, after.removeprefix(start), recursive=recursive)
    return [_entry(repository, at, item) for at, item in islice(found, limit)]


def find_entries(folder: Path, commit: str, paths: Iterable[str]) -> list[GitEntry]:
    """Return those of these files and folders that exist, in the same order."""
    repository = _open(folder, commit)
    found = ((path, _find(repository, commit, path)) for path in dict.fromkeys(paths))
    return [_entry(repository, path, item) for path, item in found if item is not None]


def get_entry(folder: Path, commit: str, path: str) -> GitEntry:
    entries = find_entries(folder, commit, [path])
    if not entries:
        raise EntryNotFound(path, commit=commit)
    return entries[0]


def read_blob(folder: Path, oid: str) -> bytes:
    """Return the content of a file as git holds it; of one in LFS, its pointer."""
    blob = bare_repos.open_repository(folder)[oid]
    if not isinstance(blob, pygit2.Blob):
        raise TypeError(f"{oid} is no file.")
    return blob.data


def get_commit(repository: pygit2.Repository, commit: str) -> pygit2.Commit:
    """Return the commit of this id, or the one that the tag of this id points to."""
    try:
        return repository[commit].peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError):
        raise RevisionNotFound(commit) from None


def find_item(root: pygit2.Tree, path: str) -> pygit2.Object | None:
    """Return the file or folder at this path; None also for an invalid path."""
    if not all(path.split("/")):
        return None
    try:
        found: pygit2.Object = root[path]
    except (KeyError, ValueError, pygit2.GitError):
        return None
    # The commit of a submodule lies in another repository.
    return found if found.filemode != FileMode.COMMIT else None


def ids_in(tree: pygit2.Tree) -> dict[bytes, bytes]:
    """Return the ids of the files and folders that lie in a folder, by name, as git holds them.

    An object for each entry would take ten times as long.
    """
    found = _TREE_ITEM.findall(tree.read_raw())
    return {name: oid for mode, name, oid in found if mode != SUBMODULE}


def parse_pointer(data: bytes) -> LfsPointer | None:
    """Return the pointer that a file holds; None when it is no LFS pointer."""
    match = _POINTER_PATTERN.fullmatch(data)
    if match is None:
        return None
    return LfsPointer(sha256=match[1].decode(), size=int(match[2]), pointer_size=len(data))


def pointer_to(sha256: str, size: int) -> bytes:
    return POINTER % (sha256.encode(), size)


def _open(folder: Path, commit: str) -> pygit2.Repository:
    try:
        return bare_repos.open_repository(folder)
    except pygit2.GitError:
        # The repository was deleted a moment ago.
        raise RevisionNotFound(commit) from None


def _root(repository: pygit2.Repository, commit: str) -> TreeItem:
    return TreeItem(FOLDER, get_commit(repository, commit).tree_id.raw)


def _find(repository: pygit2.Repository, commit: str, path: str) -> TreeItem | None:
    """Return the file or folder at this path; None also for an invalid path."""
    found = _root(repository, commit)
    for name in path.split("/"):
        try:
            raw = name.encode()
        except UnicodeEncodeError:
            return None
        if found.mode != FOLDER or not raw or b"\0" in raw:
            return None
        match = _find_name(_read_folder(repository, found.oid), raw)
        if match is None or match[1] == SUBMODULE:
            return None
        found = TreeItem(match[1], match[3])
    return found


def _walk(
    repository: pygit2.Repository, oid: bytes, start: str, after: str, *, recursive: bool
) -> Iterator[tuple[str, TreeItem]]:
    first, _, rest = after.partition("/")
    data = _read_folder(repository, oid)
    for match in _TREE_ITEM.finditer(data, _position(data, first.encode()) if first else 0):
        mode, raw, item = match.groups()
        name = _decode(raw)
        # The commit of a submodule lies in another repository.
        if name is None or mode == SUBMODULE:
            continue
        seen = name == first
        if not seen:
            yield start + name, TreeItem(mode, item)
        if recursive and mode == FOLDER:
            inside, behind = f"{start}{name}/", rest if seen else ""
            yield from _walk(repository, item, inside, behind, recursive=True)


def _find_name(data: bytes, name: bytes) -> re.Match[bytes] | None:
    """Return the entry of this name.

    A search for its bytes takes a hundredth of the time that reading all the entries takes. An id
    may have the same bytes, but hardly with the end of an id before and a mode in front of them.
    """
    sought, at = b" %s\0" % name, -1
    while (at := data.find(sought, at + 1)) >= 0:
        for mode in _MODES:
            start = at - len(mode)
            is_entry = start == 0 or (start > 0 and data[start - 21] == 0)
            if is_entry and data.startswith(mode, start):
                return _TREE_ITEM.match(data, start)
    return None


def _position(data: bytes, name: bytes) -> int:
    """Return where the entry of this name begins, or the first one behind where it would stand."""
    match = _find_name(data, name)
    if match is None:
        behind = (each for each in _TREE_ITEM.finditer(data) if _sort_key(each) >= name)
        match = next(behind, None)
    return len(data) if match is None else match.start()


def _sort_key(match: re.Match[bytes]) -> bytes:
    # Git sorts a folder as if its name ended in a slash.
    return match[2] + b"/" if match[1] == FOLDER else match[2]


def _decode(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        # No URL can name it.
        return None


class LargeFolders:
    """The large folders that were read last, as git holds them.

    To unpack one of 100,000 entries takes longer than to read a page of it.
    """

    LARGE_BYTES = 256 * 1024
    MOST_BYTES = 32 * 1024 * 1024

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[str, bytes]) -> bytes | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: tuple[str, bytes], data: bytes) -> None:
        if not self.LARGE_BYTES <= len(data) <= self.MOST_BYTES:
            return
        with self._lock:
            self._size += len(data) - len(self._held.pop(key, b""))
            self._held[key] = data
            while self._size > self.MOST_BYTES:
                self._size -= len(self._held.popitem(last=False)[1])


_large_folders = LargeFolders()


def _read_folder(repository: pygit2.Repository, oid: bytes) -> bytes:
    # With the repository, because no other may read what only this one has.
    key = (repository.path, oid)
    data = _large_folders.get(key)
    if data is None:
        data = repository.odb.read(pygit2.Oid(raw=oid))[1]
        _large_folders.put(key, data)
    return data


def _entry(repository: pygit2.Repository, path: str, item: TreeItem) -> GitEntry:
    if item.mode == FOLDER:
        return GitEntry(path=path, type="directory", oid=item.oid.hex())
    oid = pygit2.Oid(raw=item.oid)
    _, size = repository.odb.read_header(oid)
    lfs = None
    if size in POINTER_SIZES and isinstance(blob := repository[oid], pygit2.Blob):
        lfs = parse_pointer(blob.data)
    return GitEntry(
        path=path,
        type="file",
        oid=item.oid.hex(),
        size=lfs.size if lfs else size,
        lfs=lfs,
        is_link=item.mode == LINK,
    )
