"""The metadata at the top of a README: YAML between two lines of dashes, read as plain JSON."""

import math
import re
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from hublet.repos.cards.errors import InvalidCard

LARGEST = 1 << 20
DEEPEST = 20

_MOST_BITS = 63

# A mark of the byte order and blanks before the first line are left behind by some editors.
_OPENING = re.compile(r"\ufeff?\s*---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)

_TEXT = ("pipeline_tag", "library_name", "pretty_name", "sdk")
_TEXTS = ("license", "language", "tags", "datasets", "base_model", "metrics")

_BOOL = "tag:yaml.org,2002:bool"
_TRUTH = re.compile("true|True|TRUE|false|False|FALSE")


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Read words as YAML 1.2 does: `no` is Norwegian, and a day is text."""
    kept: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items():
        for tag, pattern in rules:
            if not tag.endswith((":bool", ":timestamp")):
                kept.setdefault(first, []).append((tag, pattern))
    for first in "tTfF":
        kept.setdefault(first, []).append((_BOOL, _TRUTH))
    return kept


_Loader = type("_Loader", (yaml.CSafeLoader,), {"yaml_implicit_resolvers": _resolvers()})


def parse(content: str) -> dict[str, Any] | None:
    """Return the metadata, None when there is none; raise InvalidCard when it is no good."""
    text = _front(content)
    if text is None or not text.strip():
        return None
    if len(text) > LARGEST:
        raise InvalidCard([f"It has more than {LARGEST} characters."])
    data = _plain(_load(text))
    if data is None:
        return None
    if not isinstance(data, dict):
        raise InvalidCard(["It must be a list of names with values."])
    if problems := list(_problems(data)):
        raise InvalidCard(problems)
    return data


def _front(content: str) -> str | None:
    opening = _OPENING.match(content)
    if opening is None:
        return None
    closing = _CLOSING.search(content, opening.end())
    return content[opening.end() : closing.start()] if closing else None


def _load(text: str) -> Any:
    try:
        _check_structure(text)
        return yaml.load(text, _Loader)  # noqa: S506 - it is a safe one
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else None
        where = f" in line {line} of README.md" if line else ""
        raise InvalidCard([f"It is no YAML: {error.problem}{where}."]) from None
    except (yaml.YAMLError, ValueError):
        raise InvalidCard(["It is no YAML."]) from None


def _check_structure(text: str) -> None:
    """Refuse what a few lines can blow up: aliases to aliases, and nesting without end."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidCard(["It must not use aliases (*name)."])
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise InvalidCard([f"It is nested more than {DEEPEST} times."])


def _plain(value: Any) -> Any:
    """Return the value as JSON has it; text stands in for what JSON cannot say."""
    if isinstance(value, dict):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InvalidCard(["It has a number that is too large."])
    if isinstance(value, str) and "\x00" in value:
        raise InvalidCard(["It must not contain the NUL character."])
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, str | int) else str(value)


def _key(key: Hashable) -> str:
    return str(_plain(key))


def _problems(data: dict[str, Any]) -> Iterator[str]:
    for name in _TEXT:
        if data.get(name) is not None and not isinstance(data[name], str):
            yield f'"{name}" must be a string.'
    for name in _TEXTS:
        if data.get(name) is not None and not _is_texts(data[name]):
            yield f'"{name}" must be a string or a list of strings.'


def _is_texts(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, str) for item in items)
