"""YAML loader for what people wrote: core schema of YAML 1.2, no aliases, bounded work.

The parser of libyaml streams events, and reading stops at the first one that breaks a limit, so
the work is bounded whatever the text is. What comes out is JSON.
"""

import math
import re
from typing import Any, TypeAlias

import yaml
from yaml import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

LARGEST_TEXT = 1 << 20
MOST_NESTED = 20

# An event (a name, a value, the end of a list) takes as long as so many bytes of plain text.
WORK_OF_AN_EVENT = 256
MOST_WORK = LARGEST_TEXT + LARGEST_TEXT // 8

# What is longer is text.
_LONGEST_NUMBER = 100
_MOST_BITS = 63
_LONGEST_QUOTE = 50

_LINE_ENDS = "\n\r\x85\u2028\u2029"

_CONSTANTS: dict[str, str | bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    # JSON has no such numbers.
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "nan"),
    **{sign + word: "inf" for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-inf"),
}
_NUMBER_START = frozenset("+-.0123456789")
_DECIMAL = re.compile("[-+]?[0-9]+")
_PREFIXED = re.compile("0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_CORE = "tag:yaml.org,2002:"
_STRING = _CORE + "str"
_TYPES: dict[str, tuple[type, ...]] = {
    _CORE + "int": (int,),
    _CORE + "float": (float, int),
    _CORE + "bool": (bool,),
    _CORE + "null": (type(None),),
}


Scalar: TypeAlias = str | int | float | bool | None


class InvalidYaml(ValueError):
    """Text that is no YAML, or more of it than is read; the problem is a sentence without end."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = mark.line + 1 if mark else None


class TooMuchYaml(InvalidYaml):
    """More names and values than are read; whether they are good nobody knows."""


def load(text: str) -> Any:
    """Return the one document of a text as JSON, None when it is empty; raise InvalidYaml."""
    document = _Document()
    most_events = _most_events(text)
    try:
        for count, event in enumerate(yaml.parse(text, yaml.CSafeLoader)):
            if count > most_events:
                raise TooMuchYaml(
                    f"It has more than {most_events} names and values", event.start_mark
                )
            document.add(event)
    except yaml.MarkedYAMLError as error:
        raise InvalidYaml(f"It is no YAML: {error.problem}", error.problem_mark) from None
    except yaml.YAMLError:
        raise InvalidYaml("It must not contain control characters") from None
    return document.value


def _most_events(text: str) -> int:
    """Return how many events are read of the text; raise InvalidYaml when it is not to be read."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidYaml("It is no Unicode text") from None
    if size > LARGEST_TEXT:
        raise InvalidYaml(f"It has more than {LARGEST_TEXT} bytes")
    # libyaml compares each %TAG with all that came before, and shows none of them as an event.
    if text.startswith(("%", "\ufeff%")) or any(end + "%" in text for end in _LINE_ENDS):
        raise InvalidYaml("It must not use directives (a line that begins with %)")
    return (MOST_WORK - size) // WORK_OF_AN_EVENT


class _Document:
    """Builds the value of a document from the events of the parser."""

    def __init__(self) -> None:
        self._documents = 0
        self._root: list[Any] = []
        # The collection that is being read, and the name in it that waits for its value.
        self._items: list[Any] | dict[str, Any] = self._root
        self._name: str | None = None
        self._outer: list[tuple[list[Any] | dict[str, Any], str | None]] = []

    @property
    def value(self) -> Any:
        return self._root[0] if self._root else None

    def add(self, event: Event) -> None:
        # Most events are scalars: what stands here is what the work consists of.
        if isinstance(event, ScalarEvent):
            if "\x00" in event.value:
                raise InvalidYaml("It must not contain the NUL character", event.start_mark)
            if self._name is None and isinstance(self._items, dict):
                # Names are text, as in JSON, whatever they would be as values.
                self._name = _new_name(event, self._items)
            else:
                self._add_value(_scalar(event))
        else:
            self._add_other(event)

    def _add_other(self, event: Event) -> None:
        match event:
            case SequenceStartEvent():
                self._open(event, [], "seq")
            case MappingStartEvent():
                self._open(event, {}, "map")
            case CollectionEndEvent():
                self._close()
            case AliasEvent():
                raise InvalidYaml("It must not use aliases (*name)", event.start_mark)
            case DocumentStartEvent():
                self._start_document(event)

    def _start_document(self, event: Event) -> None:
        self._documents += 1
        if self._documents > 1:
            raise InvalidYaml("It must be one document", event.start_mark)

    def _open(self, event: CollectionStartEvent, items: Any, tag: str) -> None:
        if event.tag not in {None, _CORE + tag}:
            raise _unknown_tag(event)
        if isinstance(self._items, dict) and self._name is None:
            raise InvalidYaml("A name must be text, not a list or a mapping", event.start_mark)
        self._outer.append((self._items, self._name))
        if len(self._outer) > MOST_NESTED:
            raise InvalidYaml(f"It is nested more than {MOST_NESTED} times", event.start_mark)
        self._items, self._name = items, None

    def _close(self) -> None:
        value = self._items
        self._items, self._name = self._outer.pop()
        self._add_value(value)

    def _add_value(self, value: Any) -> None:
        if isinstance(self._items, list):
            self._items.append(value)
        else:
            self._items[self._name or ""] = value
            self._name = None


def _new_name(event: ScalarEvent, items: dict[str, Any]) -> str:
    name: str = event.value
    if event.tag is not None:
        _scalar(event)
    if name in items:
        shown = name[:_LONGEST_QUOTE]
        raise InvalidYaml(f'The name "{shown}" is there twice', event.start_mark)
    return name


def _scalar(event: ScalarEvent) -> Scalar:
    text: str = event.value
    tag = event.tag
    if tag == _STRING or (tag is None and not event.implicit[0]):
        return text
    try:
        value = _resolve(text)
    except OverflowError:
        raise InvalidYaml("It has a number that is too large", event.start_mark) from None
    if tag is not None and type(value) not in _TYPES.get(tag, ()):
        raise _unknown_tag(event)
    return value


def _resolve(text: str) -> Scalar:
    """Return what a plain scalar means: `no`, `1:30` and a date are text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START or len(text) > _LONGEST_NUMBER:
        return text
    if _DECIMAL.fullmatch(text):
        return _checked(int(text))
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else str(number)
    return _checked(int(text, 0)) if _PREFIXED.fullmatch(text) else text


def _checked(number: int) -> int:
    if number.bit_length() > _MOST_BITS:
        raise OverflowError
    return number


def _unknown_tag(event: ScalarEvent | CollectionStartEvent) -> InvalidYaml:
    shown = str(event.tag).replace(_CORE, "!!")[:_LONGEST_QUOTE]
    return InvalidYaml(f"The tag {shown} is unknown, or does not fit its value", event.start_mark)
