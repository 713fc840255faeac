"""Previews of files: what a browser shows of a file, by its name and its first bytes."""

import asyncio
from dataclasses import replace
from enum import StrEnum

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.repos.browse import downloads
from hublet.repos.browse.downloads import TEXT, safe_media_type
from hublet.repos.browse.records import StoredFile
from hublet.repos.errors import ContentMissing
from hublet.repos.git import trees
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.web.files.auth import FilesVisit
from hublet.web.files.folders import MAX_README_BYTES, cache_of, place_of, render_markdown
from hublet.web.rendering import ByteReader, code, notebooks, tables, tensors
from hublet.web.rendering.notebooks import NotebookPreview
from hublet.web.rendering.tables import TablePreview
from hublet.web.rendering.tensors import TensorPreview

# A page shows so much of a text; the rest is behind the link to the file itself.
MAX_TEXT_BYTES = 1 << 20
MAX_LINES = 10_000
# What is no text has a zero soon.
_LOOKED_AT = 8000

_ROWS_VERSION = f"rows-1 {code.VERSION}"
_ROW = '<tr id="L{0}"><td class="ln"><a href="#L{0}">{0}</a></td><td class="code">{1}</td></tr>'

_CUT = "<!-- cut -->"


class PreviewKind(StrEnum):
    code = "code"
    markdown = "markdown"
    image = "image"
    audio = "audio"
    video = "video"
    table = "table"
    notebook = "notebook"
    tensors = "tensors"
    pdf = "pdf"
    nothing = "nothing"


_BY_SUFFIX = {
    "md": PreviewKind.markdown,
    "markdown": PreviewKind.markdown,
    "csv": PreviewKind.table,
    "tsv": PreviewKind.table,
    "jsonl": PreviewKind.table,
    "ndjson": PreviewKind.table,
    "parquet": PreviewKind.table,
    "ipynb": PreviewKind.notebook,
    "safetensors": PreviewKind.tensors,
    "gguf": PreviewKind.tensors,
    "pdf": PreviewKind.pdf,
}
# Kinds that are drawn from a text, which can be shown as well.
_WITH_SOURCE = {PreviewKind.markdown, PreviewKind.table, PreviewKind.notebook}

DrawnContent = TablePreview | NotebookPreview | TensorPreview


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePreview:
    """What `files/file.html` shows of the content."""

    kind: PreviewKind
    # The rows of a table of code, or drawn Markdown.
    body: Markup | None = None
    drawn: DrawnContent | None = None
    line_count: int = 0
    # What is missing, as a sentence.
    note: str = ""
    # Whether there is a source beside what is drawn.
    has_source: bool = False


async def load_preview(files: FilesVisit, file: StoredFile, *, as_code: bool) -> FilePreview:
    """Load what can be shown of a file; `as_code` wants the source of what could be drawn."""
    kind = _kind_of(file)
    has_source = kind in _WITH_SOURCE and _is_text(file)
    try:
        if as_code and has_source:
            return replace(await _load_code(files, file), has_source=True)
        return replace(await _load(files, file, kind), has_source=has_source)
    except ContentMissing:
        return FilePreview(kind=PreviewKind.nothing, note="Its content was not uploaded yet.")


def _kind_of(file: StoredFile) -> PreviewKind:
    entry = file.entry
    if entry.is_link:
        return PreviewKind.code
    kind = _BY_SUFFIX.get(entry.path.rpartition(".")[2].lower())
    if kind is PreviewKind.markdown and (entry.lfs or entry.size > MAX_README_BYTES):
        return PreviewKind.code
    if kind is not None:
        return kind
    main = safe_media_type(entry.path).partition("/")[0]
    if main in {"image", "audio", "video"}:
        return PreviewKind(main)
    # What is in git and has a name that says nothing may be a text.
    return PreviewKind.code if _is_text(file) or entry.lfs is None else PreviewKind.nothing


def _is_text(file: StoredFile) -> bool:
    return safe_media_type(file.entry.path) == TEXT


async def _load(files: FilesVisit, file: StoredFile, kind: PreviewKind) -> FilePreview:
    if kind is PreviewKind.code:
        return await _load_code(files, file)
    if kind is PreviewKind.markdown:
        return FilePreview(kind=kind, body=await render_markdown(files, file.entry))
    if kind not in {PreviewKind.table, PreviewKind.notebook, PreviewKind.tensors}:
        return FilePreview(kind=kind)
    drawn = await asyncio.to_thread(_draw, files, file, await open_reader(files, file))
    if not drawn.refusal:
        return FilePreview(kind=kind, drawn=drawn)
    if _is_text(file):
        return replace(await _load_code(files, file), note=drawn.refusal)
    return FilePreview(kind=PreviewKind.nothing, note=drawn.refusal)


def _draw(files: FilesVisit, file: StoredFile, read: ByteReader) -> DrawnContent:
    path, size = file.entry.path, file.entry.size
    match path.rpartition(".")[2].lower():
        case "ipynb":
            data = read(0, min(size, notebooks.MAX_BYTES + 1))
            return notebooks.preview_notebook(data, place_of(files, path))
        case "safetensors":
            return tensors.preview_safetensors(read, size=size)
        case "gguf":
            return tensors.preview_gguf(read, size=size)
        case "parquet":
            return tables.preview_parquet(read, size=size)
        case _:
            return tables.preview_table(path, read(0, min(size, tables.MAX_BYTES)), size=size)


async def _load_code(files: FilesVisit, file: StoredFile) -> FilePreview:
    """Load the lines of a text as rows, kept by what the file holds and what its name says."""
    name = file.entry.path.rpartition("/")[2]
    key = f"{_ROWS_VERSION} {file.entry.oid} {name}"
    cache, group = cache_of(files.visit), file.repo.id
    found = await asyncio.to_thread(cache.find, group, key)
    if found is None:
        read = await open_reader(files, file)
        found = await asyncio.to_thread(_render_rows, read, file.entry.size, name)
        if found is None:
            return FilePreview(kind=PreviewKind.nothing)
        await asyncio.to_thread(cache.put, group, key, found)
    rows = Markup(found.decode())  # noqa: S704 - rows of our own
    count = rows.count("<tr id=")
    return FilePreview(
        kind=PreviewKind.code, body=rows, line_count=count, note=_missing(file.entry.size, rows)
    )


def _missing(size: int, rows: Markup) -> str:
    if size > MAX_TEXT_BYTES:
        return "Only the first megabyte is shown."
    return f"Only the first {MAX_LINES:,} lines are shown." if rows.endswith(_CUT) else ""


def _render_rows(read: ByteReader, size: int, name: str) -> bytes | None:
    data = read(0, min(size, MAX_TEXT_BYTES))
    if b"\0" in data[:_LOOKED_AT]:
        return None
    # A character may be cut at the end.
    lines = code.highlight(data.decode(errors="replace"), name)
    rows = [_ROW.format(number, line) for number, line in enumerate(lines[:MAX_LINES], 1)]
    return "".join([*rows, _CUT if len(lines) > MAX_LINES else ""]).encode()


async def open_reader(files: FilesVisit, file: StoredFile) -> ByteReader:
    """Return what reads a part of a file, wherever it lies; it blocks."""
    if file.entry.lfs is None:
        data = await asyncio.to_thread(trees.read_blob, file.folder, file.entry.oid)
        return lambda start, end: data[start:end]
    stored = await downloads.get_file(files.visit.database, files.revision, file.entry.path)
    assert stored.content is not None  # noqa: S101 - of a file in LFS
    source = ContentSource(open_store(files.visit.hub.settings), stored.content)
    return lambda start, end: b"".join(source.pieces(start, end))
