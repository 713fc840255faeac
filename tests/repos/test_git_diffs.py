"""What changed between commits, and where lines come from."""

from pathlib import Path

import pygit2
import pytest

from hublet.repos.errors import EntryNotFound, RevisionNotFound
from hublet.repos.git import bare_repos, diffs
from hublet.repos.git import blame as git_blame
from hublet.repos.git.blame import blame
from hublet.repos.git.diffs import ChangeKind, FileDiff, diff_commits, diverge
from hublet.repos.git.trees import pointer_to
from repos.git_objects import commit_files

LINES = b"".join(b"line %d\n" % number for number in range(1, 21))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bare_repos.create_empty(tmp_path / "x.git")
    return tmp_path / "x.git"


def change(folder: Path, old: dict[str, bytes], new: dict[str, bytes]) -> list[FileDiff]:
    first = commit_files(folder, old)
    second = commit_files(folder, new, parents=(first,))
    return list(diff_commits(folder, first, second).files)


def test_each_file_says_what_became_of_it(folder: Path) -> None:
    files = change(
        folder,
        {"changed": b"a\n", "deleted": b"b\n", "moved": LINES, "same": b"c\n"},
        {"added": b"d\n", "changed": b"e\n", "new/place": LINES, "same": b"c\n"},
    )
    assert [(file.path, file.old.path, file.kind) for file in files] == [
        ("added", "added", ChangeKind.added),
        ("changed", "changed", ChangeKind.changed),
        ("deleted", "deleted", ChangeKind.deleted),
        ("new/place", "moved", ChangeKind.renamed),
    ]
    assert [(file.additions, file.deletions) for file in files] == [(1, 0), (1, 1), (0, 1), (0, 0)]


def test_lines_have_numbers_on_each_side(folder: Path) -> None:
    [file] = change(folder, {"a": LINES}, {"a": LINES.replace(b"line 10\n", b"ten\nmore\n")})
    [hunk] = file.hunks
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (7, 7, 7, 8)
    assert [(line.text, line.old, line.new) for line in hunk.lines[2:7]] == [
        ("line 9", 9, 9),
        ("line 10", 10, None),
        ("ten", None, 10),
        ("more", None, 11),
        ("line 11", 11, 12),
    ]
    assert file.old.text == LINES.decode()


def test_the_first_commit_adds_everything(folder: Path) -> None:
    commit = commit_files(folder, {"a": b"1\n", "b/c": b"2"})
    diff = diff_commits(folder, None, commit)
    assert [(file.path, file.kind, file.additions) for file in diff.files] == [
        ("a", ChangeKind.added, 1),
        ("b/c", ChangeKind.added, 1),
    ]


def test_a_missing_line_feed_at_the_end_is_no_line(folder: Path) -> None:
    [file] = change(folder, {"a": b"1"}, {"a": b"2"})
    assert [line.text for hunk in file.hunks for line in hunk.lines] == ["1", "2"]


def test_binary_files_have_no_lines(folder: Path) -> None:
    [file] = change(folder, {"a": b"\x00\x01"}, {"a": b"\x00\x02\x03"})
    assert (file.is_binary, file.hunks, file.old.size, file.new.size) == (True, (), 2, 3)


def test_pointers_are_shown_as_what_they_point_to(folder: Path) -> None:
    old, new = pointer_to("1" * 64, 1_000), pointer_to("2" * 64, 2_000)
    [file] = change(folder, {"a.bin": old}, {"a.bin": new})
    assert (file.is_lfs, file.hunks, file.old.size, file.new.size) == (True, (), 1_000, 2_000)


def test_a_mode_is_a_change(folder: Path) -> None:
    first = commit_files(folder, {"run": b"1"})
    repository = bare_repos.open_repository(folder)
    index = pygit2.Index()
    blob = repository.create_blob(b"1")
    index.add(pygit2.IndexEntry("run", blob, pygit2.enums.FileMode.BLOB_EXECUTABLE))
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    tree = index.write_tree(repository)
    second = str(repository.create_commit(None, who, who, "x", tree, [first]))
    [file] = diff_commits(folder, first, second).files
    assert (file.old.mode, file.new.mode, file.hunks) == (0o100644, 0o100755, ())


def test_files_beyond_the_limit_are_named_only(folder: Path) -> None:
    names = [f"f{number:02}" for number in range(diffs.MAX_FILES + 2)]
    files = change(folder, {}, dict.fromkeys(names, b"x\n"))
    assert [file.path for file in files] == names
    assert [file.is_read for file in files] == [True] * diffs.MAX_FILES + [False] * 2
    assert files[-1].hunks == ()


def test_lines_beyond_the_limit_are_cut_and_files_after_them_not_read(folder: Path) -> None:
    many = b"x\n" * (diffs.MAX_LINES + 10)
    first, second = change(folder, {}, {"a": many, "b": b"y\n"})
    assert (first.is_cut, first.additions) == (True, diffs.MAX_LINES + 10)
    assert sum(len(hunk.lines) for hunk in first.hunks) == diffs.MAX_LINES
    assert not second.is_read


def test_one_file_can_be_read_by_itself(folder: Path) -> None:
    many = b"x\n" * (diffs.MAX_LINES + 10)
    commit = commit_files(folder, {"a": many, "b": many})
    diff = diff_commits(folder, None, commit, path="b")
    [file] = diff.files
    assert (file.path, file.is_cut, diff.file_count) == ("b", False, 2)
    assert diff_commits(folder, None, commit, path="c").files == ()


def test_more_files_than_can_be_named_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffs, "MAX_FILES_NAMED", 3)
    commit = commit_files(folder, {f"f{number}": b"x" for number in range(5)})
    diff = diff_commits(folder, None, commit)
    assert (len(diff.files), diff.file_count) == (3, 5)


def test_large_files_are_not_compared(folder: Path) -> None:
    large = b"x\n" * (diffs.MAX_FILE_BYTES // 2 + 1)
    [file] = change(folder, {"a": b"x"}, {"a": large})
    assert (file.is_too_large, file.hunks, file.new.text) == (True, (), None)
    assert diffs.diff_contents("a", b"", large).is_too_large


def test_long_lines_are_cut(folder: Path) -> None:
    [file] = change(folder, {}, {"a": b"x" * 10_000})
    assert len(file.hunks[0].lines[0].text) == diffs.MAX_LINE_CHARACTERS


def test_names_and_texts_need_not_be_valid(folder: Path) -> None:
    [file] = change(folder, {}, {"ü": b"\xff\xfe\n"})
    assert (file.path, file.hunks[0].lines[0].text) == ("ü", "\ufffd\ufffd")


def test_how_far_two_commits_are_apart(folder: Path) -> None:
    root = commit_files(folder, {"a": b"0"})
    base = commit_files(folder, {"a": b"1"}, parents=(root,), at=1)
    middle = commit_files(folder, {"a": b"2"}, parents=(root,), at=2)
    head = commit_files(folder, {"a": b"3"}, parents=(middle,), at=3)
    found = diverge(folder, base, head, limit=1)
    assert (found.merge_base, found.ahead, found.behind) == (root, 2, 1)
    assert [commit.id for commit in found.commits] == [head]


def test_unrelated_commits_have_nothing_in_common(folder: Path) -> None:
    one, other = (commit_files(folder, {name: b""}, message=name) for name in "ab")
    assert diverge(folder, one, other, limit=9).merge_base is None


async def test_blame_names_the_commit_of_each_line(folder: Path) -> None:
    first = commit_files(folder, {"a": b"1\n2\n3\n"}, message="First.")
    second = commit_files(folder, {"a": b"1\ntwo\n3\n"}, parents=(first,), message="Second.")
    found = await blame(folder, second, "a")
    assert [(hunk.commit.title, hunk.start, hunk.count) for hunk in found.hunks] == [
        ("First.", 1, 1),
        ("Second.", 2, 1),
        ("First.", 3, 1),
    ]
    assert (found.text, found.refusal) == ("1\ntwo\n3\n", "")


async def test_lines_that_look_like_a_report_fool_nobody(folder: Path) -> None:
    commit = commit_files(folder, {"a": b"%s 1 1 1\nauthor x\n" % (b"a" * 40)})
    found = await blame(folder, commit, "a")
    assert [(hunk.commit.id, hunk.count) for hunk in found.hunks] == [(commit, 2)]


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (b"\x00", "This file is no text."),
        (b"x" * (git_blame.MAX_BYTES + 1), "This file is too large to say where its lines come from."),
        (b"\n" * (git_blame.MAX_LINES + 1), "This file is too large to say where its lines come from."),
        (pointer_to("1" * 64, 5), "This file is in LFS: it changes as a whole."),
    ],
    ids=["binary", "bytes", "lines", "lfs"],
)  # fmt: skip
async def test_some_files_have_no_blame(folder: Path, data: bytes, refusal: str) -> None:
    found = await blame(folder, commit_files(folder, {"a": data}), "a")
    assert (found.refusal, found.hunks) == (refusal, ())


async def test_a_blame_that_takes_too_long_is_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_blame, "LONGEST_SECONDS", 0)
    found = await blame(folder, commit_files(folder, {"a": b"1\n"}), "a")
    assert found.refusal.startswith("The history of this file is too long")
    assert found.text == "1\n"


async def test_only_files_of_a_commit_have_blame(folder: Path) -> None:
    commit = commit_files(folder, {"a/b": b"1"})
    for path in ("a", "c", "", "--help", "a/../a/b"):
        with pytest.raises(EntryNotFound):
            await blame(folder, commit, path)
    with pytest.raises(RevisionNotFound):
        await blame(folder, "0" * 40, "a/b")
