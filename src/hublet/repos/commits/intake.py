"""Commit intake: checks the operations of a commit as they arrive and writes content to the disk.

Small content becomes git objects, content that is too large for git becomes blobs. Nothing of it
is visible before the refs move. Everything here blocks on the disk.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.repos import cards
from hublet.repos.cards import README
from hublet.repos.commits.operations import (
    AddFile,
    AddLfsFile,
    CommitHeader,
    DeleteFile,
    DeleteFolder,
    FileContent,
    Operation,
)
from hublet.repos.commits.parser import CommitParser
from hublet.repos.errors import InvalidCommit, InvalidCommitPath, InvalidPath
from hublet.repos.git import patterns
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.tree_changes import FilePut, TreeChanges
from hublet.repos.git.trees import parse_pointer, pointer_to
from hublet.repos.names import check_path, paths_above
from hublet.storage.contents import put_blob
from hublet.storage.object_store import ObjectStore
from hublet.storage.records import Blob

# Larger content goes to the storage, and git holds a pointer to it.
LARGEST_IN_GIT = 10 << 20
# An event of a commit that changes more says nothing of what it changes.
MOST_CHANGED_NAMES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """A parsed commit, its content on the disk."""

    header: CommitHeader
    changes: TreeChanges
    # Large files that came with this request.
    blobs: tuple[Blob, ...]
    # Files that were uploaded through LFS before; whether they were is not checked yet.
    lfs_files: tuple[AddLfsFile, ...]
    # What the branch must have at these paths: the id of an object, or None for nothing.
    expected: Mapping[str, str | None] = field(default_factory=dict)
    # Whether a pull request may be opened that changes nothing.
    may_be_empty: bool = True
    # False: no file in it has the prefix of a credential.
    may_leak: bool = True

    @property
    def changed_names(self) -> tuple[str, ...] | None:
        """The first names of all paths that it changes; None when they are many."""
        changes = self.changes
        paths = {*changes.puts, *changes.deleted_files, *changes.deleted_folders}
        names = {path.partition("/")[0] for path in paths}
        if any(put.is_lfs for put in changes.puts.values()):
            names.add(patterns.GIT_ATTRIBUTES_FILE)
        return tuple(sorted(names)) if len(names) <= MOST_CHANGED_NAMES else None


@dataclass(slots=True)
class _SeenPaths:
    """The paths of a commit, to find those that exclude each other."""

    added: set[str] = field(default_factory=set)
    # Folders that an added file lies in.
    folders: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def add(self, path: str) -> None:
        if path in self.added or path in self.deleted:
            raise InvalidCommit(f"{path} must be there once in a commit.")
        above = set(paths_above(path))
        if path in self.folders or not above.isdisjoint(self.added):
            raise InvalidCommit(f"{path} cannot be a file and a folder in one commit.")
        self.added.add(path)
        self.folders |= above

    def delete(self, path: str) -> None:
        if path in self.added or path in self.deleted:
            raise InvalidCommit(f"{path} must be there once in a commit.")
        self.deleted.add(path)


class CommitIntake:
    """Feed it the body of a request, then `finish`; `close` in any case.

    Operations that come without a body are given to `take`, and then there is `complete`.
    """

    def __init__(
        self, *, store: ObjectStore, folder: Path, largest_file: int, credential_prefix: str
    ) -> None:
        self.writer = ObjectWriter(folder)
        self._credential_prefix = credential_prefix.encode()
        self._may_leak = False
        self._store = store
        self._parser = CommitParser(store, self.take, largest_file=largest_file)
        self._changes = TreeChanges()
        self._attributes: bytes | None = None
        self._blobs: list[Blob] = []
        self._lfs_files: list[AddLfsFile] = []
        self._seen = _SeenPaths()

    def feed(self, data: bytes) -> None:
        self._parser.feed(data)

    def finish(self) -> CommitRequest:
        return self.complete(self._parser.finish())

    def complete(self, header: CommitHeader) -> CommitRequest:
        # Files in a deleted folder are deleted with it; a folder may be deleted like a file.
        files = self._changes.deleted_files
        deleted = self._changes.deleted_folders | files
        separate = {path for path in files if deleted.isdisjoint(paths_above(path))}
        return CommitRequest(
            header=header,
            changes=replace(self._changes, deleted_files=separate, attributes=self._attributes),
            blobs=tuple(self._blobs),
            lfs_files=tuple(self._lfs_files),
            may_leak=self._may_leak,
        )

    @property
    def has_files(self) -> bool:
        """Whether there is something on the disk to be closed."""
        return self._parser.has_spool or self.writer.has_file

    def close(self) -> None:
        self._parser.close()
        self.writer.discard()

    def take(self, operation: Operation) -> None:
        """Check an operation, and write its content; the content is closed."""
        try:
            self._apply(operation)
        finally:
            if isinstance(operation, AddFile):
                operation.content.close()

    def _apply(self, operation: Operation) -> None:
        _check_path(operation.path)
        # Paths of large files go into .gitattributes.
        self._may_leak = self._may_leak or self._credential_prefix in operation.path.encode()
        match operation:
            case AddFile(path=path):
                self._seen.add(path)
                self._put(operation)
            case AddLfsFile(path=path):
                self._seen.add(path)
                self._lfs_files.append(operation)
            case DeleteFile(path=path):
                self._seen.delete(path)
                self._changes.deleted_files.add(path)
            case DeleteFolder(path=path):
                self._seen.delete(path)
                self._changes.deleted_folders.add(path)

    def _put(self, operation: AddFile) -> None:
        path, content = operation.path, operation.content
        if operation.is_lfs or content.size > LARGEST_IN_GIT:
            put = self._put_blob(content)
            self._changes.puts[path] = replace(put, moved_from=operation.moved_from)
            return
        data = content.read_all()
        if (lfs := parse_pointer(data)) is not None:
            # A pointer that was written by hand needs its content on the hub as well.
            self._lfs_files.append(AddLfsFile(path=path, sha256=lfs.sha256, size=lfs.size))
            return
        if path == README:
            cards.parse_metadata(data.decode(errors="replace"))
        elif path == patterns.GIT_ATTRIBUTES_FILE:
            self._attributes = data
        self._may_leak = self._may_leak or self._credential_prefix in data
        self._changes.puts[path] = FilePut(
            oid=self.writer.add("blob", data), size=len(data), moved_from=operation.moved_from
        )

    def _put_blob(self, content: FileContent) -> FilePut:
        spool = content.spooled()
        git_sha1 = spool.git_sha1()
        blob = replace(put_blob(self._store, spool), git_sha1=git_sha1)
        self._blobs.append(blob)
        pointer = pointer_to(blob.sha256, blob.size)
        return FilePut(oid=self.writer.add("blob", pointer), size=blob.size, is_lfs=True)


def _check_path(path: str) -> None:
    try:
        check_path(path)
    except InvalidPath as error:
        # The path in printable form, so that the message names it.
        printable = path[:200].encode("ascii", "backslashreplace").decode()
        raise InvalidCommitPath(f"{printable!r}: {error.message}") from None
