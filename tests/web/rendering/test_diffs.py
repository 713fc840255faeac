"""Diffs as rows."""

import re

import pytest

from hublet.repos.git.diffs import (
    ChangeKind,
    CommitDiff,
    DiffHunk,
    DiffLine,
    DiffSide,
    FileDiff,
    diff_contents,
)
from hublet.repos.git.trees import LfsPointer
from hublet.web.rendering import diffs
from hublet.web.rendering.diffs import RenderedFile, render_diff, render_file_diff, size_text


def rendered(old: str, new: str, path: str = "a.txt") -> RenderedFile:
    return render_file_diff(diff_contents(path, old.encode(), new.encode()))


def rows_of(file: RenderedFile) -> list[tuple[str, int | None, int | None, str]]:
    return [(row.kind, row.old, row.new, row.code) for hunk in file.hunks for row in hunk.rows]


def changed(**fields: object) -> FileDiff:
    side = DiffSide(path="a.bin", mode=0o100644)
    values = {"kind": ChangeKind.changed, "old": side, "new": side} | fields
    return FileDiff(**values)  # type: ignore[arg-type]


def test_rows_have_the_numbers_of_both_sides() -> None:
    file = rendered("a\nb\nc\n", "a\nx y\nc\nd\n")
    assert rows_of(file) == [
        ("same", 1, 1, "a"),
        ("del", 2, None, "b"),
        ("add", None, 2, "x y"),
        ("same", 3, 3, "c"),
        ("add", None, 4, "d"),
    ]
    assert (file.additions, file.deletions, file.notes) == (2, 1, ())
    assert file.hunks[0].title == "Lines 1 - 4"


def test_words_that_changed_are_marked_between_the_colours() -> None:
    file = rendered("x = load('a', 1)\n", "x = load('b', 1)\n", "a.py")
    assert [row[3] for row in rows_of(file)] == [
        'x = load(<span class="s">&#39;<mark>a</mark>&#39;</span>, <span class="n">1</span>)',
        'x = load(<span class="s">&#39;<mark>b</mark>&#39;</span>, <span class="n">1</span>)',
    ]


def test_marks_never_cross_a_tag() -> None:
    file = rendered("return 1 + 2\n", "return 'a < b' + 2\n", "a.py")
    for row in rows_of(file):
        inside = re.findall(r"<mark>(.*?)</mark>", row[3])
        assert inside
        assert not any("<" in text for text in inside)


def test_lines_with_nothing_in_common_have_no_marks() -> None:
    assert "<mark>" not in str(rows_of(rendered("alpha beta\n", "1 + 2 = 3;\n")))


def test_html_and_hidden_characters_are_escaped() -> None:
    rows = rows_of(rendered("<script>\n", "<script>\u202e\x1b\n"))
    assert rows[0][3] == "&lt;script&gt;"
    assert rows[1][3] == (
        '&lt;script&gt;<span class="ctl"><mark>U+202E</mark></span><mark>␛</mark>'
    )


def test_a_line_feed_of_another_kind_is_seen() -> None:
    assert [row[3] for row in rows_of(rendered("a b\n", "a b\r\n"))] == [
        "a b",
        'a b<span class="ctl"><mark>␍</mark></span>',
    ]
    assert "␍" not in str(rows_of(rendered("a\r\nb\r\n", "a\r\nc\r\n")))


def test_long_lines_and_long_runs_are_not_compared_by_words() -> None:
    long = "word " * 100
    assert "<mark>" not in str(rows_of(rendered(f"{long}a\n", f"{long}b\n")))
    old, new = ("".join(f"line {n} {end}\n" for n in range(diffs.MAX_RUN + 1)) for end in "ab")
    assert "<mark>" not in str(rows_of(rendered(old, new)))


def test_only_so_many_lines_are_compared_by_words() -> None:
    count = diffs.MAX_COMPARED_LINES + 50
    old, new = ("".join(f"same\nline {n} {end}\n" for n in range(count)) for end in "ab")
    marked = sum("<mark>" in row[3] for row in rows_of(rendered(old, new)))
    assert marked == 2 * diffs.MAX_COMPARED_LINES


def test_only_so_much_is_coloured() -> None:
    text = f"import os  # {'x' * 20}\n" * 5_000
    files = tuple(diff_contents(f"{n}.py", text.encode(), f"{text}#".encode()) for n in range(3))
    html = [str(file.hunks) for file in render_diff(CommitDiff(files=files, file_count=3)).files]
    assert ["class=" in text for text in html] == [True, False, False]


def test_a_file_without_its_whole_text_still_has_lines() -> None:
    hunk = DiffHunk(
        old_start=1, old_count=0, new_start=9, new_count=1,
        lines=(DiffLine(text="<b>", old=None, new=9),),
    )  # fmt: skip
    file = render_file_diff(changed(hunks=(hunk,), additions=1))
    assert rows_of(file) == [("add", None, 9, "&lt;b&gt;")]
    assert file.hunks[0].title == "Line 9"


@pytest.mark.parametrize(
    ("file", "notes"),
    [
        (changed(is_binary=True, old=DiffSide(path="a", mode=0o100644, size=999),
                 new=DiffSide(path="a", mode=0o100644, size=1_500)),
         ("No text: 999 B before, 1.5 kB after.",)),
        (changed(is_read=False), ("The lines of this file are not loaded yet.",)),
        (changed(is_too_large=True), ("This file is too large to be compared.",)),
        (changed(new=DiffSide(path="a.bin", mode=0o100755)), ("Mode 100644 became 100755.",)),
        (changed(kind=ChangeKind.renamed, old=DiffSide(path="b", mode=0o100644)),
         ("Moved without a change.",)),
        (changed(kind=ChangeKind.added), ("An empty file.",)),
    ],
)  # fmt: skip
def test_what_has_no_lines_says_why(file: FileDiff, notes: tuple[str, ...]) -> None:
    assert render_file_diff(file).notes == notes


def test_files_in_lfs_show_the_sizes_of_their_content() -> None:
    lfs = [LfsPointer(sha256="0" * 64, size=size, pointer_size=130) for size in (12_000_000, 14)]
    sides = [DiffSide(path="a", mode=0o100644, size=each.size, lfs=each) for each in lfs]
    both = render_file_diff(changed(old=sides[0], new=sides[1]))
    assert both.notes == ("In LFS: 12.0 MB before, 14 B after.",)
    added = changed(kind=ChangeKind.added, old=DiffSide(path="a"), new=sides[0])
    assert render_file_diff(added).notes == ("In LFS: 12.0 MB.",)
    deleted = changed(kind=ChangeKind.deleted, old=sides[0], new=DiffSide(path="a"))
    assert render_file_diff(deleted).notes == ("In LFS: 12.0 MB before.",)


def test_what_is_missing_is_said() -> None:
    files = (changed(), changed(is_read=False))
    assert render_diff(CommitDiff(files=files[:1], file_count=1)).note == ""
    assert render_diff(CommitDiff(files=files, file_count=2)).note == (
        "The changes of 1 of 2 files are shown."
    )
    assert render_diff(CommitDiff(files=files, file_count=3_000)).note == (
        "The changes of 1 of 3,000 files are shown. 2 are named here."
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (999_999, "1.0 MB"), (2_500_000_000, "2.5 GB"),
     (10**13, "10.0 TB")],
)  # fmt: skip
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert size_text(size) == text
