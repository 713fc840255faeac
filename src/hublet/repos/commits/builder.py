"""Commit builder: writes a commit into git, to which nothing points yet. Blocks on the disk."""

from pathlib import Path

import pygit2

from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.repos.commits.intake import CommitRequest
from hublet.repos.errors import InvalidCommit, ParentMoved, PathChanged
from hublet.repos.git import bare_repos
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.objects import CommitDraft, commit_data, email_of
from hublet.repos.git.tree_changes import AppliedChanges, apply_changes
from hublet.repos.git.trees import find_item, get_commit

# How far back a repeated commit is searched for, when others followed it.
_MOST_COMMITS_SEARCHED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBase:
    """The head of a branch that a commit is built on."""

    folder: Path
    # The name of the branch, for messages, and its commit.
    revision: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCommit:
    oid: str
    # False: the branch has all of it already, and stays where it is.
    is_new: bool
    added_bytes: int = 0


class CommitBuilder:
    """Builds the commit of one request on one head."""

    def __init__(
        self,
        base: CommitBase,
        request: CommitRequest,
        draft: CommitDraft,
        writer: ObjectWriter,
        *,
        may_be_empty: bool,
    ) -> None:
        self._base = base
        self._request = request
        self._draft = draft
        self._writer = writer
        self._may_be_empty = may_be_empty
        self._repository = bare_repos.open_repository(base.folder)
        self._head = get_commit(self._repository, base.head)

    def build(self) -> BuiltCommit:
        parent = self._request.header.parent
        if parent is not None and parent != self._base.head:
            return self._repeated_on(parent)
        try:
            applied = self._apply(self._head)
        except HubError:
            # Deleting twice fails, unless it is the same request that came twice.
            if len(self._head.parents) == 1 and self._is_repeated(self._head):
                return BuiltCommit(oid=self._base.head, is_new=False)
            raise
        if applied.tree == str(self._head.tree_id) and not self._may_be_empty:
            return BuiltCommit(oid=self._base.head, is_new=False)
        return self._commit(applied)

    def _apply(self, base: pygit2.Commit) -> AppliedChanges:
        for path, expected in self._request.expected.items():
            _check_unchanged(base.tree, path, expected)
        return apply_changes(self._repository, base.tree, self._request.changes, self._writer)

    def _commit(self, applied: AppliedChanges) -> BuiltCommit:
        data = commit_data(self._draft, tree=applied.tree, parents=(self._base.head,))
        oid = self._writer.add("commit", data)
        self._writer.finish()
        return BuiltCommit(oid=oid, is_new=True, added_bytes=applied.added_bytes)

    def _repeated_on(self, parent: str) -> BuiltCommit:
        """Find this very commit among the last ones, for a client that repeats its request."""
        commit = self._head
        for _ in range(_MOST_COMMITS_SEARCHED):
            if [str(each) for each in commit.parent_ids] == [parent]:
                if self._is_repeated(commit):
                    return BuiltCommit(oid=str(commit.id), is_new=False)
                break
            if not commit.parents:
                break
            commit = commit.parents[0]
        raise ParentMoved(self._base.revision, parent=parent, head=self._base.head)

    def _is_repeated(self, commit: pygit2.Commit) -> bool:
        """Tell whether this request, built on the commit's parent, gives the same commit."""
        if commit.message != self._draft.message:
            return False
        if commit.author.email != email_of(self._draft.author):
            return False
        try:
            applied = self._apply(commit.parents[0])
        except HubError:
            return False
        return applied.tree == str(commit.tree_id)


def _check_unchanged(tree: pygit2.Tree, path: str, expected: str | None) -> None:
    item = find_item(tree, path)
    if expected == (None if item is None else str(item.id)):
        return
    if expected is None:
        kind = "folder" if isinstance(item, pygit2.Tree) else "file"
        raise InvalidCommit(f"{path}: there is a {kind} of this name already.")
    raise PathChanged(path, "it was deleted" if item is None else "it was changed")
