"""Trees of a commit: folders and files, read straight from git's objects.

Everything here blocks on the disk; call it from a thread.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import pygit2
from pygit2.enums import FileMode

from hublet.core.dataclasses import dataclass
from hublet.repos.errors import EntryNotFound, RevisionNotFound
from hublet.repos.git import bare_repos
from hublet.repos.git.objects import SUBMODULE

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"
_POINTER_PATTERN = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,19})\n"
)
_TREE_ITEM = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
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
    tree = get_tree(repository, commit, path)
    start = f"{path}/" if path else ""
    found = _walk(tree, start, after.removeprefix(start), recursive=recursive)
    return [_entry(repository, at, item) for at, item in islice(found, limit)]


def find_entries(folder: Path, commit: str, paths: Iterable[str]) -> list[GitEntry]:
    """Return those of these files and folders that exist, in the same order."""
    repository = _open(folder, commit)
    root = get_tree(repository, commit)
    found = ((path, find_item(root, path)) for path in dict.fromkeys(paths))
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


def get_tree(repository: pygit2.Repository, commit: str, path: str = "") -> pygit2.Tree:
    root = get_commit(repository, commit).tree
    found = find_item(root, path) if path else root
    if not isinstance(found, pygit2.Tree):
        raise EntryNotFound(path, commit=commit)
    return found


def find_item(root: pygit2.Tree, path: str) -> pygit2.Object | None:
    """Return the file or folder at this path; None also for an invalid path."""
    if not all(path.split("/")):
        return None
    try:
        found: pygit2.Object = root[path]
    except (KeyError, ValueError, pygit2.GitError):
        return None
    return found if _is_content(found) else None


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


def _walk(
    tree: pygit2.Tree, start: str, after: str, *, recursive: bool
) -> Iterator[tuple[str, pygit2.Object]]:
    first, _, rest = after.partition("/")
    for index in range(_position(tree, first) if first else 0, len(tree)):
        item = tree[index]
        name = _name(item)
        if name is None or not _is_content(item):
            continue
        seen = name == first
        if not seen:
            yield start + name, item
        if recursive and isinstance(item, pygit2.Tree):
            yield from _walk(item, f"{start}{name}/", rest if seen else "", recursive=True)


def _position(tree: pygit2.Tree, name: str) -> int:
    """Return the index of this name, or of the first entry behind where it would stand."""
    target = name.encode()
    if name in tree and tree[name].filemode == FileMode.TREE:
        target += b"/"
    low, high = 0, len(tree)
    while low < high:
        middle = (low + high) // 2
        if _sort_key(tree[middle]) < target:
            low = middle + 1
        else:
            high = middle
    return low


def _sort_key(item: pygit2.Object) -> bytes:
    # Git sorts a folder as if its name ended in a slash.
    raw = item.raw_name or b""
    return raw + b"/" if item.filemode == FileMode.TREE else raw


def _name(item: pygit2.Object) -> str | None:
    try:
        return (item.raw_name or b"").decode()
    except UnicodeDecodeError:
        # No URL can name it.
        return None


def _is_content(item: pygit2.Object) -> bool:
    # The commit of a submodule lies in another repository.
    return item.filemode != FileMode.COMMIT


def _entry(repository: pygit2.Repository, path: str, item: pygit2.Object) -> GitEntry:
    oid = str(item.id)
    if item.filemode == FileMode.TREE:
        return GitEntry(path=path, type="directory", oid=oid)
    _, size = repository.odb.read_header(item.id)
    lfs = None
    if size in POINTER_SIZES and isinstance(blob := repository[item.id], pygit2.Blob):
        lfs = parse_pointer(blob.data)
    return GitEntry(
        path=path,
        type="file",
        oid=oid,
        size=lfs.size if lfs else size,
        lfs=lfs,
        is_link=item.filemode == FileMode.LINK,
    )
