"""Repository cards: the YAML metadata at the top of README.md, checked and turned into tags."""

import math
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from hublet.repos.errors import InvalidCard
from hublet.repos.git import trees
from hublet.repos.records import Card, RepoType

README = "README.md"
LARGEST_METADATA = 1 << 20
MOST_NESTED = 20

# Of a larger file only the beginning is read; the metadata is shorter than that.
_LARGEST_README = 4 * LARGEST_METADATA

_MOST_BITS = 63

# Some editors leave a byte order mark and blanks before the first line.
_OPENING = re.compile(r"\ufeff?\s*---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)

_STRING_FIELDS = ("pipeline_tag", "library_name", "pretty_name", "sdk")
_STRING_LIST_FIELDS = ("license", "language", "tags", "datasets", "base_model", "metrics")

# Tags: each field with the prefix of its values.
_MODEL_PREFIXES = {
    "library_name": "",
    "pipeline_tag": "",
    "tags": "",
    "language": "",
    "datasets": "dataset:",
    "base_model": "base_model:",
    "license": "license:",
}
_DATASET_PREFIXES = {
    "task_categories": "task_categories:",
    "task_ids": "task_ids:",
    "annotations_creators": "annotations_creators:",
    "language_creators": "language_creators:",
    "multilinguality": "multilinguality:",
    "source_datasets": "source_datasets:",
    "language": "language:",
    "license": "license:",
    "size_categories": "size_categories:",
    "tags": "",
}
_MOST_TAGS = 1000
_LONGEST_TAG = 200

_BOOL = "tag:yaml.org,2002:bool"
_TRUTH = re.compile("true|True|TRUE|false|False|FALSE")


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return resolvers of YAML 1.2: `no` is a string (Norwegian), and so is a date."""
    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items():
        for tag, pattern in rules:
            if not tag.endswith((":bool", ":timestamp")):
                resolvers.setdefault(first, []).append((tag, pattern))
    for first in "tTfF":
        resolvers.setdefault(first, []).append((_BOOL, _TRUTH))
    return resolvers


_Loader = type("_Loader", (yaml.CSafeLoader,), {"yaml_implicit_resolvers": _resolvers()})


def parse_metadata(content: str) -> dict[str, Any] | None:
    """Return the metadata, None when there is none; raise InvalidCard when it is invalid."""
    text = _front_matter(content)
    if text is None or not text.strip():
        return None
    if len(text) > LARGEST_METADATA:
        raise InvalidCard([f"It has more than {LARGEST_METADATA} characters."])
    data = _as_json(_load(text))
    if data is None:
        return None
    if not isinstance(data, dict):
        raise InvalidCard(["It must be a list of names with values."])
    if problems := list(_problems(data)):
        raise InvalidCard(problems)
    return data


def _front_matter(content: str) -> str | None:
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
    """Refuse YAML bombs: aliases to aliases, and nesting without end."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise InvalidCard(["It must not use aliases (*name)."])
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_NESTED:
            raise InvalidCard([f"It is nested more than {MOST_NESTED} times."])


def _as_json(value: Any) -> Any:
    """Return the value as JSON; a value that JSON does not have becomes a string."""
    if isinstance(value, dict):
        return {_key(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_as_json(item) for item in value]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InvalidCard(["It has a number that is too large."])
    if isinstance(value, str) and "\x00" in value:
        raise InvalidCard(["It must not contain the NUL character."])
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, str | int) else str(value)


def _key(key: Hashable) -> str:
    return str(_as_json(key))


def _problems(data: dict[str, Any]) -> Iterator[str]:
    for name in _STRING_FIELDS:
        if data.get(name) is not None and not isinstance(data[name], str):
            yield f'"{name}" must be a string.'
    for name in _STRING_LIST_FIELDS:
        if data.get(name) is not None and not _is_string_list(data[name]):
            yield f'"{name}" must be a string or a list of strings.'


def _is_string_list(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, str) for item in items)


def tags_of(data: dict[str, Any] | None, type: RepoType) -> tuple[str, ...]:  # noqa: A002 - the interface's word
    """Return the tags that follow from the metadata, each once; too long ones are left out."""
    prefixes = _DATASET_PREFIXES if type is RepoType.dataset else _MODEL_PREFIXES
    tags = (
        prefix + value
        for name, prefix in prefixes.items()
        for value in _strings((data or {}).get(name))
    )
    return tuple(dict.fromkeys(tag for tag in tags if len(tag) <= _LONGEST_TAG))[:_MOST_TAGS]


def _strings(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.strip():
            yield item.strip()


def read_card(folder: Path, commit: str, type: RepoType) -> Card:  # noqa: A002 - the interface's word
    """Return the card of a commit; an empty one when README.md is missing or invalid."""
    entry = next(iter(trees.find_entries(folder, commit, [README])), None)
    if entry is None or entry.type != "file" or entry.lfs is not None:
        return Card()
    return parse_card(trees.read_blob(folder, entry.oid), type)


def parse_card(content: bytes, type: RepoType) -> Card:  # noqa: A002 - as above
    try:
        data = parse_metadata(content[:_LARGEST_README].decode(errors="replace"))
    except InvalidCard:
        # A push is not refused for its README: git cannot show the problems well.
        return Card()
    return Card(data=data, tags=tags_of(data, type))
