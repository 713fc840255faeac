"""History rewrite without certain large files, as if they had never been committed.

Everything here blocks on the disk; call it from a thread.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pygit2
from pygit2.enums import SortMode

from hublet.repos.git import bare_repos, trees
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.objects import FOLDER, SUBMODULE, TreeItem, parse_tree, tree_data
from hublet.repos.records import Ref

# Signatures of the old commit would be wrong in the new one.
_SIGNATURES = (b"gpgsig", b"mergetag ")


def rewrite_without(folder: Path, refs: Sequence[Ref], digests: Iterable[str]) -> dict[str, str]:
    """Rewrite history without these files; return the new commits of the refs that move, by name.

    The new commits are safe on the disk, and nothing points to them yet. Commits before the
    first that had such a file stay the same.
    """
    repository = bare_repos.open_repository(folder)
    heads = {ref.name: trees.get_commit(repository, ref.sha).id for ref in refs}
    walker = repository.walk(None, SortMode.TOPOLOGICAL | SortMode.REVERSE)
    for head in heads.values():
        walker.push(head)
    with ObjectWriter(folder) as writer:
        rewriting = _HistoryRewriter(repository, writer, digests)
        new = {commit.id: rewriting.commit(commit) for commit in walker}
        writer.finish()
    return {name: new[head] for name, head in heads.items() if new[head] != str(head)}


class _HistoryRewriter:
    def __init__(
        self, repository: pygit2.Repository, writer: ObjectWriter, digests: Iterable[str]
    ) -> None:
        self._repository = repository
        self._writer = writer
        self._digests = frozenset(digests)
        # The new id of every object that was visited; None when it is removed.
        self._items: dict[bytes, bytes | None] = {}
        self._commits: dict[bytes, bytes] = {}

    def commit(self, commit: pygit2.Commit) -> str:
        """Return the id of the commit without the files; its parents must be rewritten before."""
        tree = self._folder(commit.tree_id.raw) or bytes.fromhex(
            self._writer.add("tree", tree_data({}))
        )
        changed = tree != commit.tree_id.raw or any(
            self._commits[parent.raw] != parent.raw for parent in commit.parent_ids
        )
        new = self._write_commit(commit, tree) if changed else str(commit.id)
        self._commits[commit.id.raw] = bytes.fromhex(new)
        return new

    def _write_commit(self, commit: pygit2.Commit, tree: bytes) -> str:
        head, blank, message = commit.read_raw().partition(b"\n\n")
        lines = [b"tree " + tree.hex().encode()]
        lines += [
            b"parent " + self._commits[parent.raw].hex().encode() for parent in commit.parent_ids
        ]
        lines += _other_lines(head)
        return self._writer.add("commit", b"\n".join(lines) + blank + message)

    def _folder(self, oid: bytes) -> bytes | None:
        if oid not in self._items:
            items = parse_tree(self._raw(oid))
            new = {name: (item, self._item(item)) for name, item in items.items()}
            kept = {
                name: TreeItem(item.mode, left)
                for name, (item, left) in new.items()
                if left is not None
            }
            self._items[oid] = oid if kept == items else self._write_folder(kept)
        return self._items[oid]

    def _write_folder(self, items: dict[bytes, TreeItem]) -> bytes | None:
        # Git has no empty folders.
        return bytes.fromhex(self._writer.add("tree", tree_data(items))) if items else None

    def _item(self, item: TreeItem) -> bytes | None:
        if item.mode == FOLDER:
            return self._folder(item.oid)
        if item.mode != SUBMODULE and item.oid not in self._items:
            self._items[item.oid] = None if self._is_unwanted(item.oid) else item.oid
        return self._items.get(item.oid, item.oid)

    def _is_unwanted(self, oid: bytes) -> bool:
        _, size = self._repository.odb.read_header(pygit2.Oid(raw=oid))
        if size not in trees.POINTER_SIZES:
            return False
        lfs = trees.parse_pointer(self._raw(oid))
        return lfs is not None and lfs.sha256 in self._digests

    def _raw(self, oid: bytes) -> bytes:
        return self._repository[pygit2.Oid(raw=oid)].read_raw()


def _other_lines(head: bytes) -> list[bytes]:
    """Return the lines of a commit that neither name other objects nor sign it."""
    lines: list[bytes] = []
    left_out = False
    for line in head.split(b"\n"):
        # A line that begins with a blank belongs to the one before.
        if not line.startswith(b" "):
            left_out = line.startswith((b"tree ", b"parent ", *_SIGNATURES))
        if not left_out:
            lines.append(line)
    return lines
