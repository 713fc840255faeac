"""Repository cards: the YAML metadata at the top of README.md, checked and turned into tags."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from hublet.core import yaml_loader
from hublet.core.yaml_loader import LARGEST_TEXT, InvalidYaml, TooMuchYaml
from hublet.repos import evaluations
from hublet.repos.card_rules import errors_of, warnings_of
from hublet.repos.errors import CardTooLong, InvalidCard
from hublet.repos.evaluations import read_evaluations
from hublet.repos.git import trees
from hublet.repos.records import Card, LinkKind, Repo, RepoLink, RepoType

README = "README.md"

# Of a larger file only the beginning is read; the metadata is shorter than that.
_LARGEST_README = 4 * LARGEST_TEXT

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
# Links: each field with what it names.
_LINKS = {
    "models": LinkKind.model,
    "datasets": LinkKind.dataset,
    "base_model": LinkKind.base_model,
}
_MOST_LINKS = 200
_MOST_TAGS = 1000
_MOST_PROBLEMS = 20

_NO_METADATA = (
    "There is no metadata at the top of README.md; it helps others to find the repository."
)
_LONGEST_TAG = 200
_LONGEST_DESCRIPTION = 1000
_CITATION = re.compile(
    r"^```[a-z]*[ \t]*\r?\n(@[a-z]+\{[^`]{1,10000})^```", re.MULTILINE | re.IGNORECASE
)

# For a space whose card has none.
DEFAULT_EMOJI = "🚀"
# The longest emoji, a family of four with skin tones, has eleven code points.
_MAX_EMOJI_LENGTH = 16


def parse_metadata(content: str) -> dict[str, Any] | None:
    """Return the metadata, None when there is none; raise InvalidCard when it is invalid."""
    block = _metadata_block(content)
    if block is None:
        return None
    data = _load(*block)
    if data is None:
        return None
    if not isinstance(data, dict):
        raise InvalidCard(["It must be a list of names with values."])
    if problems := list(_problems(data)):
        raise InvalidCard(problems)
    return data


def review(content: str, type: RepoType) -> list[str]:  # noqa: A002 - the interface's word
    """Return warnings about a README.md; raise InvalidCard with every error of its fields."""
    try:
        data = parse_metadata(content)
    except CardTooLong as error:
        # The commit takes it, so nobody is kept from uploading a large dataset.
        return [f"{error.problems[0]} The hub reads none of it."]
    if not data:
        return [_NO_METADATA]
    if problems := list(islice(errors_of(data, type), _MOST_PROBLEMS)):
        raise InvalidCard(problems)
    return list(islice(warnings_of(data), _MOST_PROBLEMS))


def _metadata_block(content: str) -> tuple[str, int] | None:
    """Return the YAML and how many lines of README.md stand above it."""
    fences = _fences_of(content)
    if fences is None:
        return None
    opening, closing = fences
    return content[opening.end() : closing.start()], opening.group().count("\n")


def without_metadata(content: str) -> str:
    """Return README.md without its block of metadata."""
    fences = _fences_of(content)
    return content if fences is None else content[fences[1].end() :]


def _fences_of(content: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """Return the lines above and below the metadata."""
    opening = _OPENING.match(content)
    closing = _CLOSING.search(content, opening.end()) if opening else None
    return (opening, closing) if opening and closing else None


def _load(text: str, lines_above: int) -> Any:
    try:
        return yaml_loader.load(text)
    except InvalidYaml as error:
        where = f" in line {lines_above + error.line} of README.md" if error.line else ""
        refusal = CardTooLong if isinstance(error, TooMuchYaml) else InvalidCard
        raise refusal([f"{error.problem}{where}."]) from None


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


def links_of(card: Card) -> tuple[RepoLink, ...]:
    """Return what lists can be filtered by: the tags, and the repositories that the card names."""
    named = [
        RepoLink(kind, value.casefold())
        for name, kind in _LINKS.items()
        for value in islice(_strings((card.data or {}).get(name)), _MOST_LINKS)
        if len(value) <= _LONGEST_TAG
    ]
    if any(link.kind is not LinkKind.base_model for link in named):
        named.append(RepoLink(LinkKind.linked, ""))
    tags = (RepoLink(LinkKind.tag, tag.casefold()) for tag in card.tags)
    return tuple(dict.fromkeys([*named, *tags]))


def _strings(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.strip():
            yield item.strip()


def names_in(card: dict[str, Any] | None, field: str) -> list[str]:
    """Return the repositories that a field of a card names, each once."""
    return list(dict.fromkeys(islice(_strings((card or {}).get(field)), _MOST_LINKS)))


def description_of(text: str) -> str | None:
    """Return the beginning of a README.md on one line; None when it says nothing."""
    words = " ".join(text[:_LONGEST_DESCRIPTION].split())
    return f"{words}…" if len(text) > _LONGEST_DESCRIPTION else words or None


def citation_of(text: str) -> str | None:
    """Return the first BibTeX entry in a fence of a README.md."""
    match = _CITATION.search(text)
    return match[1].strip() if match else None


def emoji_of(space: Repo) -> str:
    """Return the emoji of the space's card, where an author may have written anything."""
    emoji = (space.card or {}).get("emoji")
    if not isinstance(emoji, str) or not 0 < len(emoji.strip()) <= _MAX_EMOJI_LENGTH:
        return DEFAULT_EMOJI
    return emoji.strip()


def space_readme(space: Repo) -> bytes:
    """Return the README.md that a new space starts with: its card, as on the public hub."""
    title = " ".join(word.capitalize() for word in re.split("[-_. ]+", space.name) if word)
    return f"""---
title: "{title}"
emoji: 🚀
colorFrom: blue
colorTo: indigo
sdk: {space.sdk}
pinned: false
---
""".encode()


def changes_card(names: Collection[str] | None) -> bool:
    """Tell whether a change of these files and folders of main may change the card; None: of any."""
    return names is None or not {README, evaluations.FOLDER}.isdisjoint(names)


def read_card(folder: Path, commit: str, type: RepoType) -> Card:  # noqa: A002 - the interface's word
    """Return the card of a commit; an empty one when README.md is missing or invalid."""
    content = _read_readme(folder, commit)
    card = Card() if content is None else parse_card(content, type)
    if type is not RepoType.model:
        return card
    return replace(card, evaluations=read_evaluations(folder, commit, card.data))


def read_text(folder: Path, commit: str) -> str:
    """Return the README.md of a commit without its metadata; of a large one the beginning."""
    content = (_read_readme(folder, commit) or b"")[:_LARGEST_README].decode(errors="replace")
    opening = _OPENING.match(content)
    closing = _CLOSING.search(content, opening.end()) if opening else None
    return content[closing.end() :] if closing else content


def _read_readme(folder: Path, commit: str) -> bytes | None:
    entry = next(iter(trees.find_entries(folder, commit, [README])), None)
    if entry is None or entry.type != "file" or entry.lfs is not None:
        return None
    return trees.read_blob(folder, entry.oid)


def parse_card(content: bytes, type: RepoType) -> Card:  # noqa: A002 - as above
    try:
        data = parse_metadata(content[:_LARGEST_README].decode(errors="replace"))
    except InvalidCard:
        # A push is not refused for its README: git cannot show the problems well.
        return Card()
    return Card(data=data, tags=tags_of(data, type))
