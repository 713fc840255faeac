"""Conflicts of a pull request with its base, by git: their places, and the commit that solves them.

Everything here blocks on the disk; call it from a thread.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from hublet.community.discussions.comparison import (
    MergeRequest,
    Sides,
    contains_head,
    merge_trees,
)
from hublet.community.errors import InvalidSolution
from hublet.core.dataclasses import dataclass
from hublet.repos.git import bare_repos
from hublet.repos.git.objects import signature_of
from hublet.repos.git.trees import parse_pointer
from hublet.repos.records import NewPacks

# Of one pull request; who has more of them needs a machine of their own.
MAX_FILES = 20
# A text that is edited in a browser.
MAX_BYTES = 256 * 1024

_FILES = frozenset({FileMode.BLOB, FileMode.BLOB_EXECUTABLE})
_MARKER = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)

_Entry = pygit2.IndexEntry | None
_Conflict = tuple[_Entry, _Entry, _Entry]


class ConflictSide(StrEnum):
    """One of the two sides of a conflict."""

    base = "base"
    head = "head"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictPlaces:
    """A file that changed on both sides, and the first and last lines where, as the head has it."""

    path: str
    lines: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingFile:
    """A file that changed on both sides, with the text of each; None where it was deleted."""

    path: str
    # False when one side moved it, or made it a folder or a link.
    is_solvable: bool
    base: str | None = None
    head: str | None = None
    # Both sides in one text, between markers; None when it is no text, or too long, or deleted.
    merged: str | None = None
    is_in_base: bool = True
    is_in_head: bool = True


# By path: the text of the file, or the side that it is taken from.
Solution = Mapping[str, str | ConflictSide]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSolution:
    oid: str
    added_bytes: int
    packs: NewPacks | None = None


def list_places(folder: Path, sides: Sides) -> tuple[ConflictPlaces, ...]:
    """Return the files that conflict, by path; lines only of the first ones."""
    repository = bare_repos.open_repository(folder)
    found = _conflicts(repository, sides)
    return tuple(
        ConflictPlaces(
            path=path,
            lines=_lines(_merged_text(repository, conflict), path) if number < MAX_FILES else (),
        )
        for number, (path, conflict) in enumerate(found.items())
    )


def read_files(folder: Path, sides: Sides) -> list[ConflictingFile]:
    """Return the files that conflict with their texts; at most one more than can be solved."""
    repository = bare_repos.open_repository(folder)
    found = _conflicts(repository, sides)
    return [
        _read_file(repository, path, conflict)
        for path, conflict in islice(found.items(), MAX_FILES + 1)
    ]


def write_solution(
    folder: Path, sides: Sides, solution: Solution, request: MergeRequest
) -> WrittenSolution:
    """Write the commit that merges the base into the head, with the solution of each conflict."""
    repository = bare_repos.open_repository(folder)
    found = _conflicts(repository, sides)
    index = merge_trees(repository, sides)
    added = 0
    for path, conflict in found.items():
        if path not in solution or not _is_solvable(conflict):
            raise InvalidSolution(path, "both sides changed it, and nothing says what it shall be")
        added += _solve(repository, index, conflict, solution[path])
    tree = index.write_tree(repository)
    who = signature_of(request.author, at=request.at)
    # The head comes first: it is the pull request that goes on.
    parents = [pygit2.Oid(hex=sides.head), pygit2.Oid(hex=sides.base)]
    oid = repository.create_commit(None, who, who, request.message, tree, parents)
    return WrittenSolution(oid=str(oid), added_bytes=added)


def _conflicts(repository: pygit2.Repository, sides: Sides) -> dict[str, _Conflict]:
    if contains_head(repository, sides):
        return {}
    index = merge_trees(repository, sides)
    found = {_path(conflict): conflict for conflict in index.conflicts or ()}
    return dict(sorted(found.items()))


def _path(conflict: _Conflict) -> str:
    return next(str(entry.path) for entry in conflict if entry is not None)


def _is_solvable(conflict: _Conflict) -> bool:
    entries = [entry for entry in conflict if entry is not None]
    is_here = conflict[1] is not None or conflict[2] is not None
    return (
        is_here
        and len({entry.path for entry in entries}) == 1
        and all(entry.mode in _FILES for entry in entries)
    )


def _read_file(repository: pygit2.Repository, path: str, conflict: _Conflict) -> ConflictingFile:
    _, base, head = conflict
    if not _is_solvable(conflict):
        return ConflictingFile(path=path, is_solvable=False)
    merged = _merged_text(repository, conflict)
    return ConflictingFile(
        path=path,
        is_solvable=True,
        base=_text(repository, base),
        head=_text(repository, head),
        merged=None if merged is None else _with_names(merged, path),
        is_in_base=base is not None,
        is_in_head=head is not None,
    )


def _text(repository: pygit2.Repository, entry: _Entry) -> str | None:
    """Return the text of a file; None when it is none, or too long to be edited."""
    if entry is None or entry.mode not in _FILES:
        return None
    _, size = repository.odb.read_header(entry.id)
    if size > MAX_BYTES:
        return None
    _, data = repository.odb.read(entry.id)
    if b"\x00" in data or parse_pointer(data) is not None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _merged_text(repository: pygit2.Repository, conflict: _Conflict) -> str | None:
    ancestor, base, head = conflict
    if not _is_solvable(conflict) or base is None or head is None:
        return None
    if _text(repository, base) is None or _text(repository, head) is None:
        return None
    if ancestor is not None and _text(repository, ancestor) is None:
        return None
    result = repository.merge_file_from_index(ancestor, base, head)
    return result if isinstance(result, str) else result.contents


def _with_names(merged: str, path: str) -> str:
    """Name the sides in the markers, in place of the file."""
    names = {f"<<<<<<< {path}": "<<<<<<< base", f">>>>>>> {path}": ">>>>>>> pull request"}
    lines = merged.split("\n")
    return "\n".join(names.get(line.rstrip("\r"), line) for line in lines)


def _lines(merged: str | None, path: str) -> tuple[tuple[int, int], ...]:
    return () if merged is None else tuple(_ranges(merged.split("\n"), path))


def _ranges(lines: list[str], path: str) -> Iterator[tuple[int, int]]:
    """Yield the lines between the markers, counted as in the version of the head."""
    number, start, is_base = 0, None, False
    for line in lines:
        if line.startswith(f"<<<<<<< {path}"):
            is_base = True
        elif is_base and line.startswith("======="):
            start, is_base = number + 1, False
        elif start is not None and line.startswith(f">>>>>>> {path}"):
            yield start, max(start, number)
            start = None
        elif not is_base:
            number += 1


def _solve(
    repository: pygit2.Repository,
    index: pygit2.Index,
    conflict: _Conflict,
    chosen: str | ConflictSide,
) -> int:
    """Put a file into the index in place of its conflict; return how many bytes are new."""
    path, (_, base, head) = _path(conflict), conflict
    unsolved = index.conflicts
    assert unsolved is not None  # noqa: S101 - this is one of them
    del unsolved[path]
    if isinstance(chosen, ConflictSide):
        entry = base if chosen is ConflictSide.base else head
        if entry is not None:
            index.add(pygit2.IndexEntry(path, entry.id, entry.mode))
        return 0
    kept = head or base
    data = _check_text(path, _with_line_ends(chosen, _text(repository, kept)))
    mode = kept.mode if kept is not None else FileMode.BLOB
    index.add(pygit2.IndexEntry(path, repository.create_blob(data), mode))
    return len(data)


def _with_line_ends(text: str, before: str | None) -> str:
    """End lines as the file did before; browsers send them all alike."""
    has_returns = before is not None and "\r\n" in before
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if has_returns else text


def _check_text(path: str, text: str) -> bytes:
    data = text.encode()
    if len(data) > 2 * MAX_BYTES:
        raise InvalidSolution(path, f"it must have at most {2 * MAX_BYTES:,} bytes")
    if _MARKER.search(text):
        raise InvalidSolution(path, "there is still a line that begins with <<<<<<< or >>>>>>>")
    # To know the digest of a file is no right to its content.
    if parse_pointer(data) is not None:
        raise InvalidSolution(path, "a pointer of Git LFS has to be pushed with git")
    return data
