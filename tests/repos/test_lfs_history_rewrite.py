"""Commits that are written anew."""

from pathlib import Path

import pygit2
import pytest

from hublet.repos.git import bare_repos, trees
from hublet.repos.lfs.history_rewrite import rewrite_without
from hublet.repos.records import Ref
from repos.git_objects import commit_files

DIGEST = "ab" * 32
GONE = trees.pointer_to(DIGEST, 12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bare_repos.create_empty(tmp_path / "bare.git")
    return tmp_path / "bare.git"


def write(folder: Path, lines: list[str]) -> str:
    data = "\n".join(lines).encode()
    return str(bare_repos.open_repository(folder).write(pygit2.enums.ObjectType.COMMIT, data))


def raw(folder: Path, commit: str) -> str:
    return bare_repos.open_repository(folder)[commit].read_raw().decode()


def tree_of(folder: Path, commit: str) -> str:
    return str(trees.get_commit(bare_repos.open_repository(folder), commit).tree_id)


def test_a_signature_does_not_outlive_what_it_signed(folder: Path) -> None:
    first = commit_files(folder, {"a.bin": GONE, "b": b"b"})
    who = "ada <ada@example.com> 5 +0100"
    signed = write(
        folder,
        [
            f"tree {tree_of(folder, first)}",
            f"parent {first}",
            f"author {who}",
            f"committer {who}",
            "gpgsig -----BEGIN",
            " line",
            " -----END",
            "encoding ISO-8859-1",
            "",
            "Title",
            "",
            "tree of text",
            "",
        ],
    )

    new = rewrite_without(folder, [Ref(name="refs/heads/main", sha=signed)], [DIGEST])

    [commit] = new.values()
    tree = tree_of(folder, commit)
    parent = str(trees.get_commit(bare_repos.open_repository(folder), commit).parent_ids[0])
    assert raw(folder, commit) == (
        f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\nencoding ISO-8859-1\n"
        "\nTitle\n\ntree of text\n"
    )
    assert parent != first
    assert [entry.path for entry in trees.list_tree(folder, parent, recursive=True)] == ["b"]


def test_merges_and_what_lies_before_the_file_keep_their_shape(folder: Path) -> None:
    base = commit_files(folder, {"a": b"a"})
    left = commit_files(folder, {"a": b"a", "x.bin": GONE}, parents=(base,))
    right = commit_files(folder, {"a": b"b"}, parents=(base,))
    merge = commit_files(folder, {"a": b"b", "x.bin": GONE}, parents=(left, right))
    refs = [Ref(name="merge", sha=merge), Ref(name="right", sha=right)]

    new = rewrite_without(folder, refs, [DIGEST])

    assert list(new) == ["merge"]
    parents = [str(each) for each in _parents(folder, new["merge"])]
    assert parents[1] == right
    assert [str(each) for each in _parents(folder, parents[0])] == [base]


def _parents(folder: Path, commit: str) -> list[pygit2.Oid]:
    return trees.get_commit(bare_repos.open_repository(folder), commit).parent_ids


def test_without_such_a_file_nothing_changes(folder: Path) -> None:
    commit = commit_files(folder, {"a.bin": trees.pointer_to("cd" * 32, 12)})

    assert rewrite_without(folder, [Ref(name="main", sha=commit)], [DIGEST]) == {}
