"""Markdown as HTML that is safe to show: parse, then sanitize, then decorate.

comrak parses, nh3 keeps what is allowed, and everything that is ours (colours of code, formulas, links
to people) is added afterwards, so that nothing of it has to be allowed to strangers (decision 0047).
"""

import re
from dataclasses import replace
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from hublet.core.dataclasses import dataclass
from hublet.repos.cards import without_metadata
from hublet.web.rendering.decoration import Decorator
from hublet.web.rendering.links import MarkdownPlace
from hublet.web.rendering.sanitizer import (
    COMMENT,
    DOCUMENT,
    AllowedHtml,
    sanitize,
    without_controls,
)

__all__ = ["VERSION", "MarkdownPlace", "render", "render_comment", "render_html", "render_part"]

# Changes with every change of what this renderer makes of the same text.
VERSION = "markdown-1"

MAX_CHARACTERS = 512 * 1024
# Both parsers take time for every level at every element inside of it.
MAX_QUOTE_DEPTH = 32
# Tags that somebody wrote as HTML: those that close themselves, and those that nest.
MAX_FLAT_TAGS = 20_000
MAX_NESTING_TAGS = 3_000
# Few characters can become many, for example in footnotes.
MAX_HTML_CHARACTERS = 2_000_000

_EXTENSIONS = (
    "alerts", "autolink", "footnotes", "math_code", "math_dollars", "strikethrough", "table", "tasklist",
)  # fmt: skip
_FLAT_TAGS = "p|li|td|th|tr|dd|dt|br|hr|img|source|col|wbr|input"
_TAG = re.compile(r"</?[a-zA-Z]")
_FLAT_TAG = re.compile(rf"</?(?:{_FLAT_TAGS})\b", re.IGNORECASE)
_DEEP_QUOTE = re.compile(
    rf"^((?:[ \t*+\-.)\d]*>){{{MAX_QUOTE_DEPTH}}})(?=[ \t*+\-.)\d]*>)", re.MULTILINE
)
_CUT = Markup('<p class="cut">This text is cut here, because it is longer than {} characters.</p>')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """How a kind of text is parsed, and what is allowed in it."""

    keeps_line_breaks: bool
    allowed: AllowedHtml


_DOCUMENT = _Dialect(keeps_line_breaks=False, allowed=DOCUMENT)
_COMMENT = _Dialect(keeps_line_breaks=True, allowed=COMMENT)


def render(text: str, place: MarkdownPlace) -> Markup:
    """Return a document, such as a README.md, as HTML; its metadata block is left out."""
    return _render(without_metadata(text), place, _DOCUMENT)


def render_comment(text: str, place: MarkdownPlace) -> Markup:
    """Return a comment as HTML: line breaks stay, and few HTML tags are allowed."""
    return _render(text, place, _COMMENT)


def render_part(text: str, place: MarkdownPlace) -> Markup:
    """Return a part of a document as HTML, such as a cell of a notebook."""
    return _render(text, place, _DOCUMENT)


def render_html(html: str, place: MarkdownPlace) -> Markup:
    """Return what is allowed of HTML; nothing where it has more tags than anybody writes."""
    if _has_too_many_tags(html, "") or len(html) > MAX_HTML_CHARACTERS:
        return Markup("")
    # A program wrote it, who means nobody by a name.
    nameless = replace(place, mention_address="", thread_address="", commit_address="")
    return Decorator(nameless).decorate(sanitize(html, place))


def _render(text: str, place: MarkdownPlace, dialect: _Dialect) -> Markup:
    html = _parse(_prepare(text[:MAX_CHARACTERS]), dialect)
    decorator = Decorator(place, short_commits=dialect is _COMMENT)
    body = decorator.decorate(sanitize(html, place, dialect.allowed))
    return body + _CUT.format(f"{MAX_CHARACTERS:,}") if len(text) > MAX_CHARACTERS else body


def _prepare(text: str) -> str:
    return _DEEP_QUOTE.sub(r"\1\\", without_controls(text))


def _parse(text: str, dialect: _Dialect) -> str:
    """Return the HTML of the parser; with more tags than anybody writes, they are shown as text."""
    html = _comrak(text, dialect, escapes_html=False)
    if len(html) > MAX_HTML_CHARACTERS:
        return f"<pre>{escape(text)}</pre>"
    if text.count("<") <= MAX_NESTING_TAGS:
        return html
    without_tags = _comrak(text, dialect, escapes_html=True)
    return without_tags if _has_too_many_tags(html, without_tags) else html


def _has_too_many_tags(html: str, without_tags: str) -> bool:
    """Whether somebody wrote too many tags: those of the HTML without the parser's own."""
    flat = len(_FLAT_TAG.findall(html)) - len(_FLAT_TAG.findall(without_tags))
    nesting = len(_TAG.findall(html)) - len(_TAG.findall(without_tags)) - flat
    return flat > MAX_FLAT_TAGS or nesting > MAX_NESTING_TAGS


def _comrak(text: str, dialect: _Dialect, *, escapes_html: bool) -> str:
    # The one place that knows this parser; cmarkgfm is the way out.
    import comrak  # noqa: PLC0415 - loaded by the first page, not at every start

    options = comrak.RenderOptions()
    options.hardbreaks = dialect.keeps_line_breaks
    options.tasklist_classes = True
    options.unsafe_ = not escapes_html
    options.escape = escapes_html
    return comrak.render_markdown(text, _extension_options(), comrak.ParseOptions(), options)


@cache
def _extension_options() -> Any:
    import comrak  # noqa: PLC0415 - as above

    options = comrak.ExtensionOptions()
    for name in _EXTENSIONS:
        setattr(options, name, True)
    return options
