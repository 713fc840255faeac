"""Patterns of .gitignore and .gitattributes: held against what git itself says."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hublet.repos.git import patterns
from hublet.repos.git.patterns import (
    NEW_ATTRIBUTES,
    NEW_DATASET_ATTRIBUTES,
    GitAttributes,
    IgnoreRules,
    Pattern,
    add_lfs_lines,
)

LFS = "filter=lfs diff=lfs merge=lfs -text"

PATHS = [
    "a",
    "b.txt",
    "a.txt",
    "a b.txt",
    "[x].txt",
    "folder/a.txt",
    "folder/b.txt",
    "folder/deep/a.txt",
    "folder/deep/er/a.bin",
    "other/folder/a.txt",
    "build/x/y",
    "x!y",
    "#note",
    "a\\b",
    "über.txt",
]


@pytest.fixture(scope="module")
def work_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


def ignored_by_git(work_tree: Path, rules: str, paths: list[str]) -> set[str]:
    (work_tree / ".gitignore").write_text(rules)
    found = subprocess.run(
        ["git", "check-ignore", "--stdin", "-z", "--no-index"],
        input="\0".join(paths),
        cwd=work_tree,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(found.stdout.split("\0")) - {""}


def handed_to_lfs_by_git(work_tree: Path, attributes: str, paths: list[str]) -> set[str]:
    (work_tree / ".gitattributes").write_text(attributes)
    found = subprocess.run(
        ["git", "check-attr", "--stdin", "-z", "filter"],
        input="\0".join(paths),
        cwd=work_tree,
        capture_output=True,
        text=True,
        check=True,
    )
    words = found.stdout.split("\0")
    return {path for path, value in zip(words[::3], words[2::3], strict=False) if value == "lfs"}


RULES = [
    pytest.param("*.txt", id="a star in a name"),
    pytest.param("/*.txt", id="a slash at the start ties it to the root"),
    pytest.param("folder/*.txt", id="a slash in the middle too"),
    pytest.param("folder/", id="a folder and all in it"),
    pytest.param("folder", id="the same without a slash"),
    pytest.param("a/", id="a file is no folder"),
    pytest.param("**/a.txt", id="at any depth"),
    pytest.param("folder/**", id="everything in a folder"),
    pytest.param("folder/**/a.txt", id="any number of folders between"),
    pytest.param("**/deep/**/*.bin", id="two spans"),
    pytest.param("fold**/a.txt", id="two stars behind the first letters"),
    pytest.param("f*ld**/a.txt", id="two stars inside a name are one"),
    pytest.param("folder/de**", id="two stars at the end"),
    pytest.param("other/f**/a.txt", id="two stars in a later part"),
    pytest.param("?.txt", id="one character"),
    pytest.param("[ab].txt", id="a class"),
    pytest.param("[!a].txt", id="a class the other way round"),
    pytest.param("[^a].txt", id="the same with a circumflex"),
    pytest.param("[a-c].txt\n", id="a range"),
    pytest.param("[[:alpha:]].txt", id="a named class"),
    pytest.param("[[:nothing:]].txt", id="a class that does not exist"),
    pytest.param("[a.txt", id="a bracket that does not close"),
    pytest.param("\\[x\\].txt", id="brackets that are meant"),
    pytest.param("*.txt\n!a.txt", id="one let in again"),
    pytest.param("folder/\n!folder/a.txt", id="not out of a folder that is kept out"),
    pytest.param("folder/*\n!folder/a.txt", id="but out of one that is not"),
    pytest.param("!a.txt\n*.txt", id="the last rule decides"),
    pytest.param("# a.txt\n\n   \n", id="comments and blank lines"),
    pytest.param("\\#note", id="a hash that is meant"),
    pytest.param("x\\!y", id="an escaped character"),
    pytest.param("a.txt   ", id="blanks at the end do not count"),
    pytest.param("a\\\\b", id="a backslash"),
    pytest.param("über.txt", id="other letters"),
    pytest.param("/", id="a slash alone"),
    pytest.param("a*.*t", id="two stars in a name"),
    pytest.param("trailing\\", id="a backslash with nothing behind it"),
    pytest.param("a.txt\r\nb.txt\r\n", id="lines as Windows ends them"),
]


@pytest.mark.parametrize("rules", RULES)
def test_files_are_ignored_as_git_ignores_them(work_tree: Path, rules: str) -> None:
    ours = IgnoreRules(rules)

    assert {path for path in PATHS if ours.ignores(path)} == ignored_by_git(work_tree, rules, PATHS)


ALPHABET = st.sampled_from(["a", "b", "*", "**", "/", "?", "[ab]", "[!a]", "."])
NAMES = ["a", "b", "ab", "a.b", "a/b", "b/a", "a/a/b", "b/a/a", "a/b/a/b", "ab/ab", "a/b.a/ab"]


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(ALPHABET, min_size=1, max_size=6))
def test_any_pattern_ignores_what_it_ignores_in_git(work_tree: Path, parts: list[str]) -> None:
    rules = "".join(parts)
    ours = IgnoreRules(rules)

    assert {path for path in NAMES if ours.ignores(path)} == ignored_by_git(work_tree, rules, NAMES)


ATTRIBUTES = [
    pytest.param(f"*.txt {LFS}", id="a pattern"),
    pytest.param(f"*.txt {LFS}\na.txt -filter", id="a later line takes it back"),
    pytest.param(f"*.txt {LFS}\na.txt !filter", id="or leaves it open"),
    pytest.param(f"*.txt -filter\na.txt {LFS}", id="or gives it"),
    pytest.param(f"*.txt {LFS}\na.txt text", id="a line of other attributes changes nothing"),
    pytest.param("*.txt filter=other", id="another filter"),
    pytest.param(f"folder/** {LFS}", id="a folder"),
    pytest.param(f"folder/ {LFS}", id="a folder's own name says nothing of files"),
    pytest.param(f'"a b.txt" {LFS}', id="a quoted name"),
    pytest.param(f"a[[:space:]]b.txt {LFS}", id="a blank as git-lfs writes it"),
    pytest.param(f"# {LFS}\n\n*.bin", id="comments, and lines that say nothing"),
    pytest.param(NEW_ATTRIBUTES, id="what a new repository has"),
    pytest.param(NEW_DATASET_ATTRIBUTES, id="what a new dataset has"),
    pytest.param(f"a.txt {LFS}\n*.txt -filter", id="a pattern takes back what a name has"),
    pytest.param(f"a.txt -filter\n/a.txt {LFS}", id="a name at the root, behind one anywhere"),
    pytest.param(f"/a.txt -filter\na.txt {LFS}", id="a name anywhere, behind one at the root"),
    pytest.param(f"folder/a.txt {LFS}\na.txt -filter", id="a path, behind it a name"),
]


@pytest.mark.parametrize("text", ATTRIBUTES)
def test_files_are_handed_to_lfs_as_git_does(work_tree: Path, text: str) -> None:
    ours = GitAttributes(text)

    assert {path for path in PATHS if ours.is_lfs(path)} == handed_to_lfs_by_git(
        work_tree, text, PATHS
    )


@pytest.mark.parametrize(
    "path", [*PATHS, 'q"x', '"q', "!x", "*.bin", "#a b/c", "!a/b", "?", "a\\*b"]
)
def test_a_new_line_hands_one_file_to_lfs_and_no_other(work_tree: Path, path: str) -> None:
    text = add_lfs_lines("", [path])

    assert handed_to_lfs_by_git(work_tree, text, [*PATHS, path, "x/" + path, "y.bin"]) == {path}
    assert GitAttributes(text).is_lfs(path)


def test_lines_for_single_files_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # A folder of pictures has thousands of them, and each commit reads them all.
    text = add_lfs_lines("", ["a.png", "folder/b.png"])
    monkeypatch.setattr(patterns, "Pattern", None)

    attributes = GitAttributes(text)

    assert [attributes.is_lfs(path) for path in ("a.png", "folder/b.png", "b.png")] == [
        True,
        True,
        False,
    ]


def test_only_files_without_a_line_get_one() -> None:
    assert add_lfs_lines("*.bin filter=lfs", ["a.bin", "z.dat", "b.dat"]) == (
        f"*.bin filter=lfs\n/b.dat {LFS}\n/z.dat {LFS}\n"
    )
    assert add_lfs_lines("*.bin filter=lfs", ["a.bin"]) == "*.bin filter=lfs"


@pytest.mark.parametrize("pattern", ["*a" * 30 + "b", "**/a/" * 20 + "b", "*a*/" * 20 + "**/x"])
def test_no_pattern_takes_long(pattern: str) -> None:
    start = time.thread_time()

    assert not Pattern(pattern).matches("a/" * 1000 + "a" * 255)
    assert not Pattern(pattern).matches("a" * 255)
    assert time.thread_time() - start < 1
