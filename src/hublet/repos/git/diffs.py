"""Diffs between commits, file by file; merge bases, and how far two commits are apart.

Everything here blocks on the disk; call it from a thread.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import DeltaStatus, DiffFind, FileMode

from hublet.core.dataclasses import dataclass
from hublet.repos.git import bare_repos
from hublet.repos.git.history import CommitInfo, describe
from hublet.repos.git.trees import POINTER_SIZES, LfsPointer, get_commit, parse_pointer

# What is read at first; files beyond have a name, and are read one by one.
MAX_FILES = 20
MAX_LINES = 3_000
# Of one file that somebody opens by itself.
MAX_LINES_OF_ONE_FILE = 20_000
MAX_FILES_NAMED = 1_000
# Larger files are not compared, and those above the second size come without their whole text.
MAX_FILE_BYTES = 4 << 20
MAX_TEXT_BYTES = 200_000
MAX_LINE_CHARACTERS = 2_000
# With more files than this, only those count as moved that did not change.
_MAX_SIMILAR = 50


class ChangeKind(StrEnum):
    added = "added"
    deleted = "deleted"
    renamed = "renamed"
    changed = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """A file before or after; `size` is that of the content, also where git holds a pointer."""

    path: str
    # 0 and empty where there is no file.
    mode: int = 0
    oid: str = ""
    size: int = 0
    lfs: LfsPointer | None = None
    # The whole content, of a text that is not too long.
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line with its number on each side where it is."""

    text: str
    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffHunk:
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """The change of one file."""

    kind: ChangeKind
    old: DiffSide
    new: DiffSide
    is_binary: bool = False
    # Whether the file is too large to be compared.
    is_too_large: bool = False
    # Whether the lines were read; those of the files beyond a limit are not.
    is_read: bool = True
    # Whether lines are missing at the end.
    is_cut: bool = False
    additions: int = 0
    deletions: int = 0
    hunks: tuple[DiffHunk, ...] = ()

    @property
    def path(self) -> str:
        return self.new.path

    @property
    def is_lfs(self) -> bool:
        return self.old.lfs is not None or self.new.lfs is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDiff:
    """What changed between two commits: the files up to a limit, the first ones with lines."""

    files: tuple[FileDiff, ...]
    # How many files changed, also those beyond the limit.
    file_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """How two commits differ in history."""

    base: str
    head: str
    # None when they have none in common.
    merge_base: str | None
    # How many commits only the head has, and how many only the base.
    ahead: int
    behind: int
    # Those that only the head has, newest first, up to a limit.
    commits: tuple[CommitInfo, ...]


def diff_commits(folder: Path, old: str | None, new: str, *, path: str = "") -> CommitDiff:
    """Return what changed from one commit to another, or since nothing; if named, of one file."""
    repository = bare_repos.open_repository(folder)
    diff = _diff_trees(repository, old, new)
    lines_left = MAX_LINES_OF_ONE_FILE if path else MAX_LINES
    files: list[FileDiff] = []
    for number, delta in enumerate(islice(diff.deltas, None if path else MAX_FILES_NAMED)):
        if path and _path(delta.new_file) != path:
            continue
        is_read = len(files) < MAX_FILES and lines_left > 0
        file = _describe(repository, delta, is_read=is_read)
        if is_read and not file.is_lfs and not file.is_too_large:
            file = _with_lines(file, diff[number], lines_left)
            lines_left -= sum(len(hunk.lines) for hunk in file.hunks)
        files.append(file)
    return CommitDiff(files=tuple(files), file_count=len(diff))


def diff_contents(path: str, old: bytes, new: bytes) -> FileDiff:
    """Return what changed from one content of a file to another that is in no commit yet."""
    sides = [DiffSide(path=path, mode=FileMode.BLOB, size=len(data)) for data in (old, new)]
    file = FileDiff(kind=ChangeKind.changed, old=sides[0], new=sides[1])
    if max(len(old), len(new)) > MAX_FILE_BYTES:
        return replace(file, is_too_large=True)
    patch = pygit2.Patch.create_from(old, new)
    texts = [replace(side, text=_text(data)) for side, data in zip(sides, (old, new), strict=True)]
    file = replace(file, old=texts[0], new=texts[1])
    return _with_lines(file, patch, MAX_LINES_OF_ONE_FILE)


def diff_text(
    folder: Path, *, base: str, head: str, max_bytes: int, since_merge_base: bool = True
) -> tuple[str, bool]:
    """Return the patch to the head as git writes it, and whether it is cut.

    It begins at the last commit that both have in common, or at the base itself.
    """
    repository = bare_repos.open_repository(folder)
    head_tree = get_commit(repository, head).tree
    base_tree = (
        merge_base_tree(repository, base=base, head=head)
        if since_merge_base
        else get_commit(repository, base).tree
    )
    texts: list[str] = []
    for patch in filter(None, base_tree.diff_to_tree(head_tree)):
        max_bytes -= len(patch.data)
        if max_bytes < 0:
            return "".join(texts), True
        texts.append(patch.data.decode(errors="replace"))
    return "".join(texts), False


def merge_base_tree(repository: pygit2.Repository, *, base: str, head: str) -> pygit2.Tree:
    """Return the tree of the merge base; an empty one when the histories are unrelated."""
    common = repository.merge_base(base, head)
    if common is None:
        return repository[repository.TreeBuilder().write()].peel(pygit2.Tree)
    return get_commit(repository, str(common)).tree


def diverge(folder: Path, base: str, head: str, *, limit: int) -> Divergence:
    repository = bare_repos.open_repository(folder)
    start, other = get_commit(repository, head).id, get_commit(repository, base).id
    ahead, behind = repository.ahead_behind(start, other)
    common = repository.merge_base(start, other)
    walker = repository.walk(start)
    walker.hide(other)
    return Divergence(
        base=str(other),
        head=str(start),
        merge_base=None if common is None else str(common),
        ahead=ahead,
        behind=behind,
        commits=tuple(describe(commit) for commit in islice(walker, limit)),
    )


def _diff_trees(repository: pygit2.Repository, old: str | None, new: str) -> pygit2.Diff:
    tree = get_commit(repository, new).tree
    if old is None:
        return tree.diff_to_tree(swap=True)
    diff = get_commit(repository, old).tree.diff_to_tree(tree)
    flags = DiffFind.FIND_RENAMES
    if len(diff) > _MAX_SIMILAR:
        flags |= DiffFind.FIND_EXACT_MATCH_ONLY
    diff.find_similar(flags)
    return diff


_KINDS = {
    DeltaStatus.ADDED: ChangeKind.added,
    DeltaStatus.DELETED: ChangeKind.deleted,
    DeltaStatus.RENAMED: ChangeKind.renamed,
}


def _describe(repository: pygit2.Repository, delta: pygit2.DiffDelta, *, is_read: bool) -> FileDiff:
    kind = _KINDS.get(delta.status, ChangeKind.changed)
    old, new = (
        _side(repository, file, with_text=is_read) for file in (delta.old_file, delta.new_file)
    )
    if kind is ChangeKind.added:
        old = DiffSide(path=new.path)
    elif kind is ChangeKind.deleted:
        new = DiffSide(path=old.path)
    is_too_large = max(old.size, new.size) > MAX_FILE_BYTES
    is_lfs = old.lfs is not None or new.lfs is not None
    return FileDiff(
        kind=kind,
        old=old,
        new=new,
        is_too_large=is_too_large and not is_lfs,
        is_read=is_read or is_lfs,
    )


def _side(repository: pygit2.Repository, file: pygit2.DiffFile, *, with_text: bool) -> DiffSide:
    side = DiffSide(path=_path(file), mode=file.mode, oid=str(file.id))
    # The commit of a submodule lies in another repository.
    if file.mode in {FileMode.UNREADABLE, FileMode.COMMIT} or file.id not in repository:
        return side
    _, size = repository.odb.read_header(file.id)
    if size not in POINTER_SIZES and not (with_text and size <= MAX_TEXT_BYTES):
        return replace(side, size=size)
    data = repository[file.id].read_raw()
    lfs = parse_pointer(data)
    return replace(
        side, size=lfs.size if lfs else size, lfs=lfs, text=_text(data) if with_text else None
    )


def _text(data: bytes) -> str | None:
    return data.decode(errors="replace") if len(data) <= MAX_TEXT_BYTES else None


def _path(file: pygit2.DiffFile) -> str:
    return file.raw_path.decode(errors="replace")


def _with_lines(file: FileDiff, patch: pygit2.Patch | None, lines_left: int) -> FileDiff:
    if patch is None:
        return file
    if patch.delta.is_binary:
        return replace(file, is_binary=True)
    context, additions, deletions = patch.line_stats
    hunks = tuple(_cut_hunks(patch, lines_left))
    count = sum(len(hunk.lines) for hunk in hunks)
    return replace(
        file,
        hunks=hunks,
        additions=additions,
        deletions=deletions,
        is_cut=count < context + additions + deletions,
    )


def _cut_hunks(patch: pygit2.Patch, lines_left: int) -> Iterator[DiffHunk]:
    for hunk in patch.hunks:
        if lines_left <= 0:
            return
        # Other origins say that there is no line feed at the end of the file.
        found = (line for line in hunk.lines if line.origin in " +-")
        lines = tuple(_line(line) for line in islice(found, lines_left))
        lines_left -= len(lines)
        yield DiffHunk(
            old_start=hunk.old_start,
            old_count=hunk.old_lines,
            new_start=hunk.new_start,
            new_count=hunk.new_lines,
            lines=lines,
        )


def _line(line: Any) -> DiffLine:
    text = line.raw_content.decode(errors="replace").removesuffix("\n")
    return DiffLine(
        text=text[:MAX_LINE_CHARACTERS],
        old=line.old_lineno if line.old_lineno > 0 else None,
        new=line.new_lineno if line.new_lineno > 0 else None,
    )
