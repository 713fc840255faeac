"""Source code as HTML lines with the few colours of our style.

Classes: k keyword, s string, c comment, n number, f name that is defined, b built-in, and `ctl` for a
character that would otherwise be invisible or reorder the line.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

VERSION = "code-1"

# Above one of these, text stays without colours.
MAX_CHARACTERS = 1_000_000
MAX_LINES = 10_000
MAX_LINE_CHARACTERS = 5_000
# More than this takes longer than a page should (some 4 ms for each 1,000 characters).
QUICK_CHARACTERS = 10_000

# Controls have pictures of their own in Unicode; a tab is shown as one, a line feed ends the line.
_PICTURES = {number: 0x2400 + number for number in range(32) if number not in {9, 10}}
_VISIBLE = _PICTURES | {0x7F: 0x2421} | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_HIDDEN = re.compile(r"[\x80-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
# The most precise kind decides.
_CLASSES = {
    "Comment": "c",
    "Comment.Preproc": "k",
    "Generic.Deleted": "c",
    "Generic.Heading": "k",
    "Generic.Inserted": "s",
    "Generic.Prompt": "c",
    "Generic.Subheading": "k",
    "Keyword": "k",
    "Keyword.Constant": "b",
    "Keyword.Type": "b",
    "Literal": "s",
    "Literal.Number": "n",
    "Literal.String": "s",
    "Name.Attribute": "f",
    "Name.Builtin": "b",
    "Name.Class": "f",
    "Name.Decorator": "f",
    "Name.Exception": "b",
    "Name.Function": "f",
    "Name.Tag": "k",
    "Operator.Word": "k",
}
# Suffixes that the library does not know, or gives to a rarer language.
_OWN_CHOICES = {"ipynb": "json", "m": "matlab", "sql": "sql"}


def highlight(text: str, file_name: str) -> tuple[Markup, ...]:
    """Return the lines of a file, coloured by what its name says that it is."""
    return _highlight(text, _class_for(file_name))


def takes_long(text: str, file_name: str) -> bool:
    """Tell whether a page had better come without the colours of a file, and they later."""
    if len(text) <= QUICK_CHARACTERS or _class_for(file_name) is None:
        return False
    return not _is_too_much(text, text.split("\n"))


def plain_lines(text: str) -> tuple[Markup, ...]:
    """Return the same lines as `highlight`, without colours."""
    return _highlight(text, None)


def highlight_language(text: str, language: str) -> tuple[Markup, ...]:
    """Return the lines of a block of code whose author named the language."""
    return _highlight(text, _class_for_language(language[:40].lower()))


def make_visible(text: str) -> str:
    """Return the text with one line feed per line, and pictures for other controls."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return _CONTROL.sub(lambda found: chr(_VISIBLE[ord(found[0])]), text)


def escape_line(text: str) -> Markup:
    """Escape for HTML; characters that hide or reorder others are shown by their number."""
    return Markup(_show_hidden(str(escape(text))))  # noqa: S704 - just escaped


def _highlight(text: str, lexer_class: Any) -> tuple[Markup, ...]:
    # Many lexers end a line, such as a comment, only at a line feed.
    text = make_visible(text).removesuffix("\n") + "\n" if text else ""
    lines = text.split("\n")[:-1]
    if not lexer_class or not lines or _is_too_much(text, lines):
        return _escape_lines(text)
    try:
        tokens = list(lexer_class(stripnl=False, ensurenl=False).get_tokens(text))
    except Exception:  # noqa: BLE001 - a lexer that fails costs the colours, not the page
        tokens = []
    if "".join(value for _, value in tokens) != text:
        return _escape_lines(text)
    return tuple(map(Markup, _lines_of(_joined(tokens), has_hidden=bool(_HIDDEN.search(text)))))


def _escape_lines(text: str) -> tuple[Markup, ...]:
    return tuple(map(Markup, str(escape_line(text)).split("\n")[:-1]))


def _is_too_much(text: str, lines: list[str]) -> bool:
    if len(text) > MAX_CHARACTERS or len(lines) > MAX_LINES:
        return True
    return any(len(line) > MAX_LINE_CHARACTERS for line in lines)


def _joined(tokens: Iterable[tuple[Any, str]]) -> Iterator[tuple[str, str]]:
    """Yield texts with their classes; neighbours of one class are one, and white space joins them."""
    last, texts = "", [""]
    for kind, text in tokens:
        name = last if text.isspace() else _class_of(kind)
        if name != last:
            yield last, "".join(texts)
            last, texts = name, []
        texts.append(text)
    yield last, "".join(texts).removesuffix("\n")


def _lines_of(parts: Iterable[tuple[str, str]], *, has_hidden: bool) -> Iterator[str]:
    line: list[str] = []
    for name, text in parts:
        first, *rest = str(escape(text)).split("\n")
        line.append(_span(name, first))
        for piece in rest:
            yield _finish(line, has_hidden=has_hidden)
            line = [_span(name, piece)]
    yield _finish(line, has_hidden=has_hidden)


def _finish(line: list[str], *, has_hidden: bool) -> str:
    return _show_hidden("".join(line)) if has_hidden else "".join(line)


def _span(name: str, text: str) -> str:
    if not name or not text:
        return text
    # White space at the end of a span belongs to nobody.
    bare = text.rstrip(" ")
    return f'<span class="{name}">{bare}</span>{text[len(bare) :]}' if bare else text


def _show_hidden(html: str) -> str:
    return _HIDDEN.sub(lambda found: f'<span class="ctl">U+{ord(found[0]):04X}</span>', html)


@cache
def _class_of(kind: Any) -> str:
    names = list(kind)
    while names:
        if name := _CLASSES.get(".".join(names)):
            return name
        names.pop()
    return ""


def _class_for(file_name: str) -> Any:
    return _class_for_file_name(file_name.rpartition("/")[2][:255])


@lru_cache(maxsize=512)
def _class_for_file_name(name: str) -> Any:
    from pygments.lexers import find_lexer_class_for_filename  # noqa: PLC0415 - by the first page

    if language := _OWN_CHOICES.get(name.rpartition(".")[2].lower()):
        return _class_for_language(language)
    found = find_lexer_class_for_filename(name) or find_lexer_class_for_filename(name.lower())
    return None if found is None or found.name == "Text only" else found


@lru_cache(maxsize=512)
def _class_for_language(name: str) -> Any:
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - as above
    from pygments.util import ClassNotFound  # noqa: PLC0415 - as above

    try:
        found = type(get_lexer_by_name(name))
    except ClassNotFound:
        return None
    return None if found.name == "Text only" else found
