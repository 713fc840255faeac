"""Validation of the objects that a push brings along, before anybody can see them.

Everything here blocks; call it from a thread.
"""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pygit2
from pygit2.enums import ObjectType

from hublet.repos.errors import InvalidPath, PushRefused
from hublet.repos.git import bare_repos, process, quarantine, trees
from hublet.repos.git.trees import LfsPointer
from hublet.repos.names import check_path
from hublet.repos.push.commands import RefCommand
from hublet.repos.records import TAGS

# Larger files are never stored in git itself.
LARGEST_FILE = 10 << 20
# Only files this small can be LFS pointers.
_LARGEST_POINTER = 200
_MOST_LISTED = 5


@dataclass(slots=True)
class NewContent:
    """The new content of a push."""

    # Pointers to large files, each with a path that it has.
    pointers: dict[LfsPointer, str] = field(default_factory=dict)
    # Bytes of all files, those of large files included.
    size: int = 0
    too_large: list[str] = field(default_factory=list)


def validate(folder: Path, objects: Path, commands: Iterable[RefCommand]) -> NewContent:
    """Check all objects that these refs would make visible; raise PushRefused for invalid ones."""
    repository = bare_repos.open_repository(folder)
    repository.odb.add_disk_alternate(str(objects))
    moved = [command for command in commands if command.new_sha is not None]
    for command in moved:
        _check_kind(repository, command)
    found = NewContent()
    with _new_objects(folder, objects, [str(command.new_sha) for command in moved]) as lines:
        for line in lines:
            sha, _, path = line.rstrip(b"\n").partition(b" ")
            _validate_object(repository, sha.decode(), path.decode(errors="replace"), found)
    if found.too_large:
        raise PushRefused(_too_large(found.too_large))
    return found


def _check_kind(repository: pygit2.Repository, command: RefCommand) -> None:
    try:
        kind, _ = repository.odb.read_header(str(command.new_sha))
    except KeyError:
        raise PushRefused(f"the push lacks {command.new_sha}") from None
    if command.ref.startswith(TAGS):
        _check_tagged(repository, command)
    elif kind != ObjectType.COMMIT:
        raise PushRefused(f"{command.ref} can point to a commit only")


def _check_tagged(repository: pygit2.Repository, command: RefCommand) -> None:
    try:
        repository[str(command.new_sha)].peel(pygit2.Commit)
    except (KeyError, ValueError, pygit2.GitError):
        raise PushRefused(f"{command.ref} can stand for a commit only") from None


@contextmanager
def _new_objects(folder: Path, objects: Path, shas: list[str]) -> Iterator[IO[bytes]]:
    """List the objects reachable from these commits and from no ref yet; refuse missing ones."""
    listing = subprocess.Popen(  # noqa: S603 - the arguments are ours
        # As git does itself; commits come through the pipe, because they can be many.
        process.command(folder, "rev-list", "--objects", "--stdin", "--not", "--all"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=process.clean_environment(quarantine.variables(folder, objects)),
        cwd=folder,
    )
    with listing:
        try:
            assert listing.stdin  # noqa: S101 - a pipe was asked for
            assert listing.stdout  # noqa: S101 - as above
            listing.stdin.write("".join(f"{sha}\n" for sha in shas).encode())
            listing.stdin.close()
            yield listing.stdout
        except BaseException:
            listing.kill()
            raise
    if listing.returncode != 0:
        raise PushRefused("the push lacks objects that it refers to; a shallow clone may be why")


def _validate_object(repository: pygit2.Repository, sha: str, path: str, found: NewContent) -> None:
    kind, size = repository.odb.read_header(sha)
    if kind == ObjectType.TREE:
        _check_names(repository, sha, path)
    if kind != ObjectType.BLOB:
        return
    lfs = _pointer(repository, sha) if size <= _LARGEST_POINTER else None
    found.size += size if lfs is None else lfs.size
    if lfs is not None:
        found.pointers[lfs] = path
    if size > LARGEST_FILE:
        found.too_large.append(f"{path} ({size / (1 << 20):.1f} MiB)")


def _pointer(repository: pygit2.Repository, sha: str) -> LfsPointer | None:
    _, data = repository.odb.read(sha)
    return trees.parse_pointer(data)


def _check_names(repository: pygit2.Repository, sha: str, path: str) -> None:
    tree = repository[sha]
    if not isinstance(tree, pygit2.Tree):
        return
    for entry in tree:
        name = (entry.raw_name or b"").decode(errors="surrogateescape")
        try:
            check_path(name)
        except InvalidPath as error:
            where = f"{path}/{name}" if path else name
            printable = where.encode(errors="replace").decode()
            raise PushRefused(f"{printable!r}: {error.message}") from None


def _too_large(files: list[str]) -> str:
    listed = ", ".join(files[:_MOST_LISTED])
    more = f" and {len(files) - _MOST_LISTED} more" if len(files) > _MOST_LISTED else ""
    return (
        f"files over {LARGEST_FILE >> 20} MiB belong into git-lfs: {listed}{more}; "
        "see `git lfs migrate import`"
    )
