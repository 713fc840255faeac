"""Terminal output as HTML: colours and bold, and nothing else of what a terminal can do.

Each line stands for itself: its colours end with it, so a line looks the same in the log, in a range
of it and among the results of a search.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from markupsafe import Markup, escape

# Escape sequences: control (CSI), operating system (OSC) and other strings, and the short ones. One
# that is not complete ends with the line.
_ESCAPES = re.compile(
    r"""
    \x1b (?:
        \[ (?: ([0-9;:]{0,64}) m | [\x30-\x3f]* [\x20-\x2f]* [\x40-\x7e]? )
      | [\]PX^_] [^\x07\x1b]* (?:\x07|\x1b\\)?
      | [\x20-\x2f]* [\x30-\x7e]?
    )
    """,
    re.VERBOSE,
)
# The same in many lines: none of them ends in a later one.
_ESCAPE_BYTES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)"
)
# Their beginnings and ends in one character, as some programs print them.
_SHORT_FORMS = re.compile("[\x90\x98\x9b-\x9f]")
# Controls that no page shows; a tab and what `\r` and `\b` do are treated before.
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
# Marks that turn the direction of a text: a line must not look like what it is not.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BACKSPACES = re.compile("[^\b]\b")
# What a line without any of them needs no second look for.
_SPECIAL = re.compile(
    "[&<>'\"\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
# The most backspaces of a line that are followed.
_MOST_PASSES = 8

# The classes of hublet.css: 31 red, 32 green, 33 yellow, 34 blue, 35 magenta, 36 cyan, 90 grey.
_GREY = 90
_COLOURS = {30: _GREY, **{code: code for code in range(31, 37)}, _GREY: _GREY}
_COLOURS |= {code + 60: code for code in range(31, 37)}
# White is the colour of the text.
_PLAIN = 0
_COLOURS |= dict.fromkeys((37, 39, 97), _PLAIN)
_TEXT_COLOUR, _BACKGROUND = 38, 48
_BOLD, _DIM = 1, 2
_WEIGHTS, _NO_WEIGHT = frozenset({_BOLD, _DIM}), 22
_MOST_DIGITS = 3
_PALETTE_SIZE = 256
_CUBE, _RAMP = 16, 232
_BRIGHT = 150
_DULL = 40


def render_line(text: str) -> Markup:
    """Return a line as HTML; whatever it contains, that is text and spans of known classes."""
    if "\r" in text:
        text = _overwritten(text)
    if "\b" in text:
        text = _without_backspaces(text)
    if "\x1b" not in text and text.isprintable():
        return escape(text)
    return _render(text)


def render_lines(texts: Iterable[str]) -> list[Markup]:
    return [render_line(text) for text in texts]


def plain_text(text: str) -> str:
    """Return what a line shows, without its colours."""
    return _shown(_ESCAPES.sub("", _SHORT_FORMS.sub(_long_form, _overwritten(text))))


def strip_escapes(text: bytes) -> bytes:
    """Return lines without their colours and other sequences, for a search."""
    return _ESCAPE_BYTES.sub(b"", text)


def _render(text: str) -> Markup:
    # Most lines have nothing to hide and nothing to escape, and a log has a million of them.
    is_plain = _SPECIAL.search(text) is None
    if not is_plain:
        text = _SHORT_FORMS.sub(_long_form, text)
    parts: list[str] = []
    classes, end = "", 0
    for match in _ESCAPES.finditer(text):
        start = match.start()
        if start > end:
            parts.append(_span(text[end:start], classes, is_plain=is_plain))
        codes = match[1]
        if codes is not None:
            classes = _follow(classes, codes)
        end = match.end()
    if end < len(text):
        parts.append(_span(text[end:], classes, is_plain=is_plain))
    return Markup("".join(parts))  # noqa: S704 - each part was escaped


def _span(text: str, classes: str, *, is_plain: bool) -> str:
    shown = text if is_plain else str(escape(_shown(text)))
    return f'<span class="{classes}">{shown}</span>' if classes and shown else shown


def _shown(text: str) -> str:
    return _DIRECTIONS.sub("\N{REPLACEMENT CHARACTER}", _CONTROLS.sub("", text))


def _overwritten(text: str) -> str:
    """Return the line after each `\r` has gone back to its beginning, as a progress bar does.

    What is shorter leaves the rest of what was there, unless one of the two has colours: where
    they begin and end is not followed.
    """
    shown = ""
    for piece in text.split("\r"):
        if not piece:
            continue
        is_short = len(piece) < len(shown) and "\x1b" not in piece + shown
        shown = piece + shown[len(piece) :] if is_short else piece
    return shown


def _without_backspaces(text: str) -> str:
    for _ in range(_MOST_PASSES):
        text, count = _BACKSPACES.subn("", text)
        if not count:
            break
    return text


def _long_form(match: re.Match[str]) -> str:
    return f"\x1b{chr(ord(match[0]) - 0x40)}"


class _Style:
    """The colour, bold and dim of what follows: three codes, whose classes name them."""

    def __init__(self, classes: str) -> None:
        codes = [int(name.removeprefix("a")) for name in classes.split()]
        self.weights = [code for code in codes if code in _WEIGHTS]
        self.colour = next((code for code in codes if code not in _WEIGHTS), _PLAIN)

    @property
    def classes(self) -> str:
        colours = [self.colour] if self.colour else []
        return " ".join(f"a{code}" for code in [*colours, *self.weights])

    def follow(self, code: int, rest: list[int]) -> int:
        """Follow one code; return how many numbers it has, of which `rest` are the next ones."""
        if code in {_TEXT_COLOUR, _BACKGROUND}:
            colour, length = _extended_colour(rest)
            if code == _TEXT_COLOUR and colour is not None:
                self.colour = colour
            return 1 + length
        if code == 0:
            self.colour, self.weights = _PLAIN, []
        elif code in _WEIGHTS:
            self.weights = [each for each in self.weights if each != code] + [code]
        elif code == _NO_WEIGHT:
            self.weights = []
        else:
            self.colour = _COLOURS.get(code, self.colour)
        return 1


@lru_cache(maxsize=1024)
def _follow(classes: str, codes: str) -> str:
    """Return the classes after a sequence such as `1;38;5;208`; unknown codes do nothing."""
    numbers = [int(code or 0) for code in re.split("[;:]", codes) if len(code) <= _MOST_DIGITS]
    style, position = _Style(classes), 0
    while position < len(numbers):
        position += style.follow(numbers[position], numbers[position + 1 : position + 5])
    return style.classes


def _extended_colour(numbers: list[int]) -> tuple[int | None, int]:
    """Return the nearest class of a colour out of 256 or of all, and how many numbers name it."""
    if numbers[:1] == [5]:
        number = numbers[1] if len(numbers) > 1 else None
        return (None if number is None else _palette_colour(number)), min(2, len(numbers))
    if numbers[:1] == [2]:
        channels = numbers[1:4]
        is_whole = len(channels) == 3  # noqa: PLR2004 - red, green, blue
        return (_nearest(*channels) if is_whole else None), min(4, len(numbers))
    return None, 0


def _palette_colour(number: int) -> int | None:
    if number >= _PALETTE_SIZE:
        return None
    if number < _CUBE:
        code = 30 + number if number < 8 else 82 + number  # noqa: PLR2004 - the bright half
        return _COLOURS.get(code, _PLAIN)
    if number >= _RAMP:
        return _GREY if number < _RAMP + 12 else _PLAIN
    steps = number - _CUBE
    return _nearest(*(step and step * 40 + 55 for step in (steps // 36, steps // 6 % 6, steps % 6)))


def _nearest(red: int, green: int, blue: int) -> int:
    """Return the class whose hue is nearest; what has none is grey or the colour of the text."""
    most, least = max(red, green, blue), min(red, green, blue)
    if most - least < _DULL:
        return _PLAIN if most > _BRIGHT else _GREY
    middle = (most + least) / 2
    high = (red > middle, green > middle, blue > middle)
    return {
        (True, False, False): 31,
        (False, True, False): 32,
        (True, True, False): 33,
        (False, False, True): 34,
        (True, False, True): 35,
        (False, True, True): 36,
    }[high]
