"""Previews of files: what a browser shows of a file, by its name and its first bytes."""

import asyncio
from dataclasses import replace
from enum import StrEnum

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.repos.browse.downloads import TEXT, open_file, safe_media_type
from hublet.repos.browse.records import StoredFile
from hublet.repos.errors import ContentMissing
from hublet.web.code_cache import CodeCache
from hublet.web.files.auth import FilesVisit
from hublet.web.files.folders import MAX_README_BYTES, place_of, render_markdown
from hublet.web.rendering import ByteReader, notebooks, tables, tensors
from hublet.web.rendering.notebooks import NotebookPreview
from hublet.web.rendering.tables import TablePreview
from hublet.web.rendering.tensors import TensorPreview


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
    # Whether the colours of the rows are to be asked for.
    is_waiting: bool = False
    # What is missing, as a sentence.
    note: str = ""
    # Whether there is a source beside what is drawn.
    has_source: bool = False


async def load_preview(
    files: FilesVisit, file: StoredFile, *, as_code: bool, with_colours: bool
) -> FilePreview:
    """Load what can be shown of a file; `as_code` wants the source of what could be drawn.

    Colours of code that are not in the cache and take long come only if they are wanted.
    """
    kind = _kind_of(file)
    has_source = kind in _WITH_SOURCE and _is_text(file)
    try:
        if as_code and has_source:
            kind = PreviewKind.code
        preview = await _load(files, file, kind, with_colours=with_colours)
        return replace(preview, has_source=has_source)
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


async def _load(
    files: FilesVisit, file: StoredFile, kind: PreviewKind, *, with_colours: bool
) -> FilePreview:
    if kind is PreviewKind.code:
        return await _load_code(files, file, with_colours=with_colours)
    if kind is PreviewKind.markdown:
        return FilePreview(kind=kind, body=await render_markdown(files, file.entry))
    if kind not in {PreviewKind.table, PreviewKind.notebook, PreviewKind.tensors}:
        return FilePreview(kind=kind)
    read = await open_file(files.visit.database, files.revision, file)
    drawn = await asyncio.to_thread(_draw, files, file, read)
    if not drawn.refusal:
        return FilePreview(kind=kind, drawn=drawn)
    if _is_text(file):
        source = await _load_code(files, file, with_colours=with_colours)
        return replace(source, note=drawn.refusal)
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


async def _load_code(files: FilesVisit, file: StoredFile, *, with_colours: bool) -> FilePreview:
    read = await open_file(files.visit.database, files.revision, file)
    cache = CodeCache.of(files.visit.settings, file.repo.id)
    found = await asyncio.to_thread(
        cache.number_lines, read, file.entry.size, file.entry.path, with_colours=with_colours
    )
    if found is None:
        return FilePreview(kind=PreviewKind.nothing)
    return FilePreview(
        kind=PreviewKind.code,
        body=found.rows,
        line_count=found.count,
        is_waiting=not found.is_coloured,
        note=found.note,
    )
