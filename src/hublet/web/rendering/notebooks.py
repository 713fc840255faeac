"""Jupyter notebooks: cells of text and code with what they have put out."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.web.rendering.code import escape_line, highlight_language, make_visible
from hublet.web.rendering.links import MarkdownPlace
from hublet.web.rendering.markdown import VERSION as MARKDOWN_VERSION
from hublet.web.rendering.markdown import render_html, render_part

VERSION = f"notebooks-1 {MARKDOWN_VERSION}"

MAX_BYTES = 10 << 20
MAX_CELLS = 500
# Of all cells together; what is beyond stays plain or is left out.
MAX_TEXT_CHARACTERS = 1_000_000
MAX_IMAGE_CHARACTERS = 6_000_000
MAX_OUTPUT_CHARACTERS = 20_000
MAX_HTML_CHARACTERS = 200_000
MAX_OUTPUTS = 50

_FORMAT = 4
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}

OutputKind = Literal["text", "error", "image", "html"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookOutput:
    kind: OutputKind
    html: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCell:
    kind: Literal["markdown", "code", "raw"]
    html: Markup
    # The number in brackets, of code that has run.
    number: int | None = None
    outputs: tuple[NotebookOutput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookPreview:
    language: str = ""
    cells: tuple[NotebookCell, ...] = ()
    cell_count: int = 0
    refusal: str = ""


def preview_notebook(data: bytes, place: MarkdownPlace) -> NotebookPreview:
    if len(data) > MAX_BYTES:
        return NotebookPreview(refusal="This notebook is too large to be shown.")
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return NotebookPreview(refusal="This notebook is damaged: it is no JSON.")
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or notebook.get("nbformat") != _FORMAT:
        return NotebookPreview(refusal="This is no notebook of format 4.")
    language = _language(notebook.get("metadata"))
    renderer = _NotebookRenderer(place, language)
    return NotebookPreview(
        language=language,
        cells=tuple(renderer.cell(cell) for cell in cells[:MAX_CELLS] if isinstance(cell, dict)),
        cell_count=len(cells),
    )


class _NotebookRenderer:
    """Renders the cells of one notebook, within the limits for all of them."""

    def __init__(self, place: MarkdownPlace, language: str) -> None:
        self._place, self._language = place, language
        self._text_left = MAX_TEXT_CHARACTERS
        self._images_left = MAX_IMAGE_CHARACTERS

    def cell(self, cell: dict[str, Any]) -> NotebookCell:
        source, kind = _joined(cell.get("source")), cell.get("cell_type")
        self._text_left -= len(source)
        if kind == "markdown" and self._text_left >= 0:
            return NotebookCell(kind="markdown", html=render_part(source, self._place))
        if kind != "code":
            return NotebookCell(kind="raw", html=_plain(source))
        number, outputs = cell.get("execution_count"), cell.get("outputs")
        return NotebookCell(
            kind="code",
            html=self._code(source),
            number=number if isinstance(number, int) else None,
            outputs=tuple(self._outputs(outputs if isinstance(outputs, list) else [])),
        )

    def _code(self, source: str) -> Markup:
        lines = highlight_language(source, self._language if self._text_left >= 0 else "")
        return Markup("\n").join(lines)

    def _outputs(self, outputs: list[Any]) -> Iterator[NotebookOutput]:
        for output in outputs[:MAX_OUTPUTS]:
            if isinstance(output, dict) and (found := self._output(output)) is not None:
                yield found

    def _output(self, output: dict[str, Any]) -> NotebookOutput | None:
        if output.get("output_type") == "stream":
            return _text_output(output.get("text"))
        if output.get("output_type") == "error":
            trace = output.get("traceback")
            text = "\n".join(map(str, trace)) if isinstance(trace, list) else ""
            return NotebookOutput(kind="error", html=_plain(_cut(_ANSI.sub("", text))))
        bundle = output.get("data")
        return self._bundle(bundle) if isinstance(bundle, dict) else None

    def _bundle(self, bundle: dict[str, Any]) -> NotebookOutput | None:
        """Return the richest form that is safe to show."""
        for media_type in _MAGIC:
            if media_type in bundle and (image := self._image(media_type, bundle[media_type])):
                return NotebookOutput(kind="image", html=image)
        if (html := self._html(_joined(bundle.get("text/html")))).strip():
            return NotebookOutput(kind="html", html=html)
        if markdown := _joined(bundle.get("text/markdown") or bundle.get("text/latex")):
            self._text_left -= len(markdown)
            if self._text_left >= 0:
                return NotebookOutput(kind="html", html=render_part(markdown, self._place))
        return _text_output(bundle.get("text/plain"))

    def _html(self, html: str) -> Markup:
        self._text_left -= len(html)
        is_shown = self._text_left >= 0 and len(html) <= MAX_HTML_CHARACTERS
        return render_html(html, self._place) if is_shown else Markup("")

    def _image(self, media_type: str, encoded: Any) -> Markup | None:
        text = "".join(_joined(encoded).split())
        self._images_left -= len(text)
        if self._images_left < 0:
            return None
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        if not data.startswith(_MAGIC[media_type]):
            return None
        image = Markup('<img src="data:{};base64,{}" alt="Output of the cell" loading="lazy">')
        return image.format(media_type, base64.b64encode(data).decode())


def _language(metadata: Any) -> str:
    about = metadata if isinstance(metadata, dict) else {}
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        name = about[part].get(key) if isinstance(about.get(part), dict) else None
        if isinstance(name, str) and name:
            return name[:40]
    return "python"


def _joined(source: Any) -> str:
    """Return a text, which may be written as a list of lines."""
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _text_output(text: Any) -> NotebookOutput | None:
    plain = _ANSI.sub("", _joined(text))
    return NotebookOutput(kind="text", html=_plain(_cut(plain))) if plain else None


def _cut(text: str) -> str:
    return text if len(text) <= MAX_OUTPUT_CHARACTERS else f"{text[:MAX_OUTPUT_CHARACTERS]}\n…"


def _plain(text: str) -> Markup:
    return escape_line(make_visible(text))
