"""Reading commits: what came before one, and what last changed a path."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import bare_repos, history
from hublet.repos.git.history import CommitInfo
from repos.git_objects import commit_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bare_repos.create_empty(tmp_path / "x.git")
    return tmp_path / "x.git"


def a_line_of_commits(folder: Path, count: int) -> list[str]:
    """Commits of which each changes the file named after its number; the newest comes first."""
    commits: list[str] = []
    files: dict[str, bytes] = {"always": b"the same"}
    for number in range(count):
        files[f"f{number}"] = b"%d" % number
        # All in one second: time alone does not order them.
        commits[:0] = [commit_files(folder, files, parents=tuple(commits[:1]))]
    return commits


def test_a_commit_is_described(folder: Path) -> None:
    commit = commit_files(folder, {}, at=1_000_000_000, message="Title\n\nFirst.\n\nSecond.\n")

    assert history.list_commits(folder, commit) == [
        CommitInfo(
            id=commit,
            title="Title",
            message="First.\n\nSecond.",
            author_name="ada",
            author_email="ada@example.com",
            date=datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC),
            parents=(),
        )
    ]


@pytest.mark.parametrize(
    ("skip", "limit", "expected"),
    [
        pytest.param(0, None, slice(None), id="all"),
        pytest.param(0, 2, slice(2), id="the first page"),
        pytest.param(2, 2, slice(2, 4), id="the second page"),
        pytest.param(9, 2, slice(9, 9), id="a page behind the end"),
    ],
)
def test_commits_are_listed_newest_first(
    folder: Path, skip: int, limit: int | None, expected: slice
) -> None:
    commits = a_line_of_commits(folder, 5)

    found = history.list_commits(folder, commits[0], skip=skip, limit=limit)

    assert [commit.id for commit in found] == commits[expected]


def test_the_last_change_of_each_path_is_found(folder: Path) -> None:
    commits = a_line_of_commits(folder, 5)

    found = history.last_commits(folder, commits[0], ["f4", "f2", "always", "nothing"])

    assert {path: commit.id for path, commit in found.items()} == {
        "f4": commits[0],
        "f2": commits[2],
        "always": commits[4],
    }


def test_a_change_is_followed_through_a_merge(folder: Path) -> None:
    root = commit_files(folder, {"x": b"1", "y": b"1"}, at=1)
    left = commit_files(folder, {"x": b"2", "y": b"1"}, parents=(root,), at=2)
    right = commit_files(folder, {"x": b"1", "y": b"2"}, parents=(root,), at=3)
    merge = commit_files(folder, {"x": b"2", "y": b"2"}, parents=(left, right), at=4)

    found = history.last_commits(folder, merge, ["x", "y"])

    assert {path: commit.id for path, commit in found.items()} == {"x": left, "y": right}


def test_looking_back_has_an_end(folder: Path) -> None:
    commits = a_line_of_commits(folder, 5)

    found = history.last_commits(folder, commits[0], ["f3", "f0"], farthest=2)

    assert {path: commit.id for path, commit in found.items()} == {"f3": commits[1]}


def test_a_commit_exists_or_not(folder: Path) -> None:
    commit = commit_files(folder, {})

    assert history.commit_exists(folder, commit)
    assert not history.commit_exists(folder, "1" * 40)
    with pytest.raises(RevisionNotFound):
        history.list_commits(folder, "1" * 40)
