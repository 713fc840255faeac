"""What a pull request changes, and whether it goes together with its base."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hublet.community.discussions import comparison
from hublet.community.discussions.comparison import MergeRequest, Sides
from hublet.community.discussions.records import PullRequestCommit, PullRequestDiff
from hublet.community.errors import MergeConflicts
from hublet.repos.git import bare_repos
from hublet.repos.git.trees import get_commit, pointer_to
from repos.git_objects import commit_files

LINES = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
MERGE = MergeRequest(author="ada", at=datetime(2026, 11, 15, tzinfo=UTC), message="Together (#1)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bare_repos.create_empty(tmp_path / "x.git")
    return tmp_path / "x.git"


def forked(
    folder: Path, before: dict[str, bytes], *, base: dict[str, bytes], head: dict[str, bytes]
) -> Sides:
    """Two commits on top of one: what they say replaces what was there before."""
    root = commit_files(folder, before)
    return Sides(
        base=commit_files(folder, before | base, parents=(root,), message="Base"),
        head=commit_files(folder, before | head, parents=(root,), message="Head"),
    )


def files_of(folder: Path, commit: str) -> dict[str, bytes]:
    repository = bare_repos.open_repository(folder)
    tree = get_commit(repository, commit).tree
    return {entry.name or "": repository[entry.id].read_raw() for entry in tree}


def test_changes_of_both_sides_come_together(folder: Path) -> None:
    sides = forked(
        folder,
        {"lines": LINES},
        base={"lines": LINES.replace(b"1", b"one"), "theirs": b"x"},
        head={"lines": LINES.replace(b"9", b"nine"), "ours": b"y"},
    )

    assert comparison.conflicts(folder, sides) == []
    merged = comparison.merge(folder, sides, MERGE)

    assert merged is not None
    assert files_of(folder, merged) == {
        "lines": b"one\n2\n3\n4\n5\n6\n7\n8\nnine\n",
        "ours": b"y",
        "theirs": b"x",
    }
    commit = get_commit(bare_repos.open_repository(folder), merged)
    assert [str(oid) for oid in commit.parent_ids] == [sides.base, sides.head]
    assert (commit.message, commit.author.name) == ("Together (#1)", "ada")
    assert comparison.sides_before(folder, merge_commit=merged, head=sides.head) == sides


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        pytest.param({"a": b"x"}, {"a": b"y"}, ["a"], id="the same line"),
        pytest.param({"a": b"x"}, {"a": b"x"}, [], id="the same change"),
        pytest.param({"b": b"x"}, {"b": b"y"}, ["b"], id="the same new file"),
        pytest.param(
            {"big": pointer_to("b" * 64, 2)},
            {"big": pointer_to("c" * 64, 3)},
            ["big"],
            id="the same large file",
        ),
        pytest.param(
            {"b": b"x", "a": b"x"}, {"a": b"y", "b": b"y"}, ["a", "b"], id="several files"
        ),
    ],
)
def test_files_that_changed_on_both_sides_are_named(
    folder: Path, base: dict[str, bytes], head: dict[str, bytes], expected: list[str]
) -> None:
    before = {"a": b"1\n", "big": pointer_to("a" * 64, 1), ".gitattributes": b"big merge=lfs\n"}
    sides = forked(folder, before, base=base, head=head)

    assert comparison.conflicts(folder, sides) == expected
    if expected:
        with pytest.raises(MergeConflicts, match=f"in {', '.join(expected)}\\.$"):
            comparison.merge(folder, sides, MERGE)


def test_a_long_list_of_conflicts_is_cut_in_its_sentence() -> None:
    error = MergeConflicts([f"f{number}" for number in range(12)])

    assert error.message == (
        "This pull request conflicts with its base in "
        "f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 2 more."
    )


def test_sides_without_a_common_commit_are_compared_from_nothing(folder: Path) -> None:
    sides = Sides(
        base=commit_files(folder, {"a": b"1\n"}), head=commit_files(folder, {"b": b"2\n"})
    )

    assert comparison.conflicts(folder, sides) == []
    assert comparison.diff(folder, sides).text.startswith("diff --git a/b b/b\nnew file mode")
    merged = comparison.merge(folder, sides, MERGE)
    assert merged is not None
    assert files_of(folder, merged) == {"a": b"1\n", "b": b"2\n"}


def test_what_the_base_has_already_is_not_merged(folder: Path) -> None:
    root = commit_files(folder, {"a": b"1"})
    ahead = commit_files(folder, {"a": b"2"}, parents=(root,))

    for base in (root, ahead):
        sides = Sides(base=base, head=root)
        assert comparison.merge(folder, sides, MERGE) is None
        assert comparison.conflicts(folder, sides) == []
        assert comparison.diff(folder, sides) == PullRequestDiff(text="", is_cut=False)
        assert comparison.sides_before(folder, merge_commit=base, head=root) == Sides(
            base=root, head=root
        )


def test_a_diff_shows_what_the_head_changed_alone(folder: Path) -> None:
    sides = forked(
        folder,
        {"a": b"1\n", "bin": b"\x00"},
        base={"b": b"2\n"},
        head={"a": b"\xff\n", "bin": b"\x00\x01"},
    )

    assert comparison.diff(folder, sides) == PullRequestDiff(
        text="""\
diff --git a/a b/a
index d00491f..29e181e 100644
--- a/a
+++ b/a
@@ -1 +1 @@
-1
+\N{REPLACEMENT CHARACTER}
diff --git a/bin b/bin
index f76dd23..bdc955b 100644
Binary files a/bin and b/bin differ
""",
        is_cut=False,
    )


def test_a_diff_ends_before_the_file_that_is_too_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = commit_files(folder, {})
    new = {"a": b"1\n", "b": b"x" * 500 + b"\n", "c": b"1\n"}
    sides = Sides(base=root, head=commit_files(folder, new, parents=(root,)))
    whole = comparison.diff(folder, sides)
    assert (whole.is_cut, whole.text.count("diff --git")) == (False, 3)

    monkeypatch.setattr(comparison, "MAX_DIFF_BYTES", 400)

    cut = comparison.diff(folder, sides)
    assert (cut.is_cut, cut.text.count("diff --git")) == (True, 1)


def test_new_commits_are_told_oldest_first(folder: Path) -> None:
    root = commit_files(folder, {})
    one = commit_files(folder, {"a": b"1"}, parents=(root,), message="\n One \n\nMore.")
    two = commit_files(folder, {"a": b"2"}, parents=(one,), message="Two")

    assert comparison.new_commits(folder, old=root, new=two) == [
        PullRequestCommit(oid=one, subject="One"),
        PullRequestCommit(oid=two, subject="Two"),
    ]
    assert comparison.new_commits(folder, old=two, new=root) == []


def test_of_what_was_merged_into_it_only_the_merge_is_told(folder: Path) -> None:
    root = commit_files(folder, {})
    main = commit_files(folder, {"b": b"1"}, parents=(root,), message="On main")
    one = commit_files(folder, {"a": b"1"}, parents=(root,), message="One")
    merge = commit_files(folder, {"a": b"1", "b": b"1"}, parents=(one, main), message="Catch up")

    assert comparison.new_commits(folder, old=one, new=merge) == [
        PullRequestCommit(oid=merge, subject="Catch up")
    ]


def test_only_so_many_of_the_newest_commits_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MAX_COMMITS", 2)
    commits = [commit_files(folder, {})]
    for number in range(3):
        parents = (commits[-1],)
        commits.append(commit_files(folder, {}, parents=parents, message=f"{number}", at=number))

    found = comparison.new_commits(folder, old=commits[0], new=commits[-1])

    assert [commit.subject for commit in found] == ["1", "2"]
