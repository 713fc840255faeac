"""Diffs as rows of HTML: colours of both sides, and marks on the words that changed."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from html import unescape
from itertools import groupby
from typing import Literal

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.repos.git.diffs import ChangeKind, CommitDiff, DiffHunk, DiffLine, DiffSide, FileDiff
from hublet.web.rendering.code import VERSION as CODE_VERSION
from hublet.web.rendering.code import escape_line, highlight, make_visible

VERSION = f"diffs-1 {CODE_VERSION}"

# Of one diff: whole files are coloured, and words compared, until so much is done.
MAX_COLOURED_CHARACTERS = 400_000
MAX_COMPARED_LINES = 1_000
# Longer lines, and runs of lines that are longer, are not compared word by word.
MAX_COMPARED_CHARACTERS = 400
MAX_RUN = 60
# Lines that have less in common are two lines, not one that changed.
_MIN_SIMILARITY = 0.4
# What would be printed as 1000.0 belongs to the next unit.
_NEXT_UNIT = 999.95

_WORD = re.compile(r"\w+|\s+|.")
_PIECE = re.compile(r"<[^>]*>|&[#\w]+;|[^<&]")
_TAG = re.compile(r"<[^>]*>")

RowKind = Literal["same", "add", "del"]
Highlighter = Callable[[DiffSide], Sequence[Markup]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    kind: RowKind
    # Line numbers, where the line is on that side.
    old: int | None
    new: int | None
    code: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedHunk:
    # Which lines, in words.
    title: str
    rows: tuple[DiffRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedFile:
    path: str
    kind: ChangeKind
    # The path before, of a file that was moved.
    old_path: str | None
    additions: int
    deletions: int
    # What is to say instead of lines or besides them: sizes, modes, why lines are missing.
    notes: tuple[str, ...]
    # Whether its lines must be asked for by its own link.
    is_read: bool
    is_cut: bool
    hunks: tuple[RenderedHunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedDiff:
    files: tuple[RenderedFile, ...]
    file_count: int
    additions: int
    deletions: int
    # What is missing, as a sentence; empty when nothing is.
    note: str


def highlight_side(side: DiffSide) -> Sequence[Markup]:
    """Return the lines of a whole file; pages take them from their cache instead."""
    return highlight(side.text or "", side.path)


def render_diff(diff: CommitDiff, *, highlighter: Highlighter = highlight_side) -> RenderedDiff:
    renderer = _Renderer(highlighter)
    files = tuple(renderer.render(file) for file in diff.files)
    return RenderedDiff(
        files=files,
        file_count=diff.file_count,
        additions=sum(file.additions for file in files),
        deletions=sum(file.deletions for file in files),
        note=_missing(diff),
    )


def render_file_diff(file: FileDiff, *, highlighter: Highlighter = highlight_side) -> RenderedFile:
    return _Renderer(highlighter).render(file)


def _missing(diff: CommitDiff) -> str:
    read = sum(1 for file in diff.files if file.is_read)
    if read == diff.file_count:
        return ""
    named = "" if len(diff.files) == diff.file_count else f" {len(diff.files):,} are named here."
    return f"The changes of {read:,} of {diff.file_count:,} files are shown.{named}"


class _Renderer:
    """Renders the files of one diff, within the limits for all of them."""

    def __init__(self, highlighter: Highlighter) -> None:
        self._highlighter = highlighter
        self._characters_left = MAX_COLOURED_CHARACTERS
        self._lines_left = MAX_COMPARED_LINES

    def render(self, file: FileDiff) -> RenderedFile:
        is_text = not (file.is_lfs or file.is_binary)
        return RenderedFile(
            path=file.path,
            kind=file.kind,
            old_path=file.old.path if file.kind is ChangeKind.renamed else None,
            additions=file.additions if is_text else 0,
            deletions=file.deletions if is_text else 0,
            notes=tuple(_notes(file)),
            is_read=file.is_read,
            is_cut=file.is_cut,
            hunks=tuple(self._hunks(file)) if is_text and file.hunks else (),
        )

    def _hunks(self, file: FileDiff) -> Iterator[RenderedHunk]:
        old, new = self._colour(file.old), self._colour(file.new)
        shows_returns = _differ_in_returns(file.hunks)
        for hunk in file.hunks:
            rows = [_row(line, old, new, shows_returns=shows_returns) for line in hunk.lines]
            yield RenderedHunk(title=_title(hunk), rows=tuple(self._marked(rows)))

    def _colour(self, side: DiffSide) -> Sequence[Markup]:
        self._characters_left -= len(side.text or "")
        return self._highlighter(side) if side.text and self._characters_left >= 0 else ()

    def _marked(self, rows: list[DiffRow]) -> Iterator[DiffRow]:
        """Mark words where removed lines are followed by as many added ones, or nearly."""
        runs = [(kind, list(run)) for kind, run in groupby(rows, key=lambda row: row.kind)]
        index = 0
        while index < len(runs):
            kind, run = runs[index]
            following = runs[index + 1] if index + 1 < len(runs) else ("same", [])
            if kind == "del" and following[0] == "add" and self._may_compare(run, following[1]):
                yield from _mark_pairs(run, following[1])
                index += 2
                continue
            yield from run
            index += 1

    def _may_compare(self, removed: list[DiffRow], added: list[DiffRow]) -> bool:
        if max(len(removed), len(added)) > MAX_RUN:
            return False
        self._lines_left -= min(len(removed), len(added))
        return self._lines_left >= 0


def _row(
    line: DiffLine, old: Sequence[Markup], new: Sequence[Markup], *, shows_returns: bool
) -> DiffRow:
    kind: RowKind = "same" if line.old and line.new else "add" if line.new else "del"
    lines, number = (new, line.new) if line.new else (old, line.old)
    if number and number <= len(lines):
        code = lines[number - 1]
    else:
        code = escape_line(make_visible(line.text.removesuffix("\r")))
    if shows_returns and kind != "same" and line.text.endswith("\r"):
        code += Markup('<span class="ctl">␍</span>')
    return DiffRow(kind=kind, old=line.old, new=line.new, code=code)


def _differ_in_returns(hunks: Iterable[DiffHunk]) -> bool:
    """Whether lines end in a carriage return on one side only, which nobody would see."""
    lines = [line for hunk in hunks for line in hunk.lines if line.old is None or line.new is None]
    removed = any(line.text.endswith("\r") for line in lines if line.new is None)
    added = any(line.text.endswith("\r") for line in lines if line.old is None)
    return removed != added


def _title(hunk: DiffHunk) -> str:
    start, count = (
        (hunk.new_start, hunk.new_count) if hunk.new_count else (hunk.old_start, hunk.old_count)
    )
    return f"Line {start:,}" if count <= 1 else f"Lines {start:,} - {start + count - 1:,}"


def _mark_pairs(removed: list[DiffRow], added: list[DiffRow]) -> Iterator[DiffRow]:
    pairs = [_mark_pair(old.code, new.code) for old, new in zip(removed, added, strict=False)]
    for number, row in enumerate(removed):
        yield _with_code(row, pairs[number][0]) if number < len(pairs) else row
    for number, row in enumerate(added):
        yield _with_code(row, pairs[number][1]) if number < len(pairs) else row


def _with_code(row: DiffRow, code: Markup) -> DiffRow:
    return DiffRow(kind=row.kind, old=row.old, new=row.new, code=code)


def _mark_pair(old: Markup, new: Markup) -> tuple[Markup, Markup]:
    """Return both lines with marks on the words that one of them lacks."""
    texts = [unescape(_TAG.sub("", html)) for html in (old, new)]
    if max(map(len, texts)) > MAX_COMPARED_CHARACTERS:
        return old, new
    words = [_WORD.findall(text) for text in texts]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    if matcher.ratio() < _MIN_SIMILARITY:
        return old, new
    changes = [block for block in matcher.get_opcodes() if block[0] != "equal"]
    return (
        _mark(old, [_span(words[0], first, last) for _, first, last, _, _ in changes]),
        _mark(new, [_span(words[1], first, last) for _, _, _, first, last in changes]),
    )


def _span(words: list[str], first: int, last: int) -> range:
    """Return the positions of characters that these words take."""
    start = sum(map(len, words[:first]))
    return range(start, start + sum(map(len, words[first:last])))


def _mark(html: Markup, spans: list[range]) -> Markup:
    """Put marks around characters of the text, between its tags."""
    marked = {position for span in spans for position in span}
    if not marked:
        return html
    parts, position, is_open = [], 0, False
    for piece in _PIECE.findall(html):
        is_tag = piece.startswith("<")
        wants = not is_tag and position in marked
        if wants != is_open:
            parts.append("<mark>" if wants else "</mark>")
            is_open = wants
        parts.append(piece)
        position += 0 if is_tag else 1
    return Markup("".join([*parts, "</mark>" if is_open else ""]))  # noqa: S704 - it was Markup


def _notes(file: FileDiff) -> Iterator[str]:
    if file.old.mode and file.new.mode and file.old.mode != file.new.mode:
        yield f"Mode {file.old.mode:o} became {file.new.mode:o}."
    if file.is_lfs or file.is_binary:
        yield _sizes(file)
    elif file.is_too_large:
        yield "This file is too large to be compared."
    elif not file.is_read:
        yield "The lines of this file are not loaded yet."
    elif file.is_cut:
        yield "This diff is cut here, because it is too long."
    elif not file.hunks and file.kind is not ChangeKind.changed:
        yield "Moved without a change." if file.kind is ChangeKind.renamed else "An empty file."


def _sizes(file: FileDiff) -> str:
    what, old, new = (
        "In LFS" if file.is_lfs else "No text",
        size_text(file.old.size),
        size_text(file.new.size),
    )
    if file.kind is ChangeKind.added:
        return f"{what}: {new}."
    after = "" if file.kind is ChangeKind.deleted else f", {new} after"
    return f"{what}: {old} before{after}."


def size_text(size: int) -> str:
    """Return a size for people, in powers of 1000 as disks are sold."""
    number, units = float(size), ["B", "kB", "MB", "GB"]
    while units and number >= _NEXT_UNIT:
        number /= 1_000
        units.pop(0)
    unit = units[0] if units else "TB"
    return f"{size} B" if unit == "B" else f"{number:.1f} {unit}"
