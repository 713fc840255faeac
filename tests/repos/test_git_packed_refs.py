"""Git's own list of refs."""

import subprocess
from pathlib import Path

import pytest

from hublet.repos.git import bare_repos
from hublet.repos.git.process import clean_environment, command
from repos.git_objects import commit_files

MAIN = "refs/heads/main"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "a.git"
    bare_repos.create_empty(folder)
    return folder


def refs_of_git(folder: Path) -> dict[str, str]:
    """Ask git itself."""
    fetched = subprocess.run(
        command(folder, "for-each-ref", "--format=%(refname) %(objectname)"),
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert fetched.stderr == ""
    return dict(line.split(" ") for line in fetched.stdout.splitlines())


def test_git_finds_what_was_written(folder: Path) -> None:
    sha = commit_files(folder, {"a": b"a"})
    names: list[str] = [MAIN, "refs/heads/a-b", "refs/heads/a/c", "refs/tags/größe"]
    refs = dict.fromkeys(names, sha)

    bare_repos.write_packed_refs(folder, refs, version=3)

    assert refs_of_git(folder) == refs
    assert bare_repos.packed_refs_version(folder) == 3
    # Sorted by bytes, because git searches in halves.
    lines = (folder / "packed-refs").read_text().splitlines()
    assert [line.split(" ")[1] for line in lines[1:]] == [
        "refs/heads/a-b",
        "refs/heads/a/c",
        MAIN,
        "refs/tags/größe",
    ]


def test_a_later_state_replaces_an_earlier_one_and_never_the_other_way_round(folder: Path) -> None:
    first = commit_files(folder, {"a": b"1"})
    second = commit_files(folder, {"a": b"2"})

    bare_repos.write_packed_refs(folder, {MAIN: first}, version=1)
    bare_repos.write_packed_refs(folder, {MAIN: second}, version=2)
    bare_repos.write_packed_refs(folder, {MAIN: first}, version=1)

    assert refs_of_git(folder) == {MAIN: second}
    assert bare_repos.packed_refs_version(folder) == 2


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="none"),
        pytest.param(b"", id="an empty one"),
        pytest.param(b"# pack-refs with: peeled fully-peeled sorted \n", id="git's own"),
        pytest.param(b"# pack-refs with: sorted version=\n", id="one without a number"),
        pytest.param(b"\xff\xff", id="rubbish"),
    ],
)
def test_a_list_that_is_not_ours_is_replaced(folder: Path, content: bytes | None) -> None:
    if content is not None:
        (folder / "packed-refs").write_bytes(content)

    before = bare_repos.packed_refs_version(folder)
    bare_repos.write_packed_refs(folder, {}, version=0)

    assert (before, bare_repos.packed_refs_version(folder)) == (None, 0)
