"""Views of a dataset: which files of a commit are the rows of which split of which configuration.

The card says it (`configs`), or the names of the files do, by the rules of the `datasets` library.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.repos import cards
from hublet.repos.browse import revisions
from hublet.repos.browse.records import Revision
from hublet.repos.git import bare_repos, trees
from hublet.repos.git.trees import GitEntry
from hublet.repos.records import MAIN, RepoAddress, RepoType, Right
from hublet.sql.errors import NoData, ViewNotFound
from hublet.tokens.records import Caller

DEFAULT = "default"
TRAIN = "train"
PARQUET = "parquet"

_FORMATS = {
    "parquet": "parquet",
    "csv": "csv",
    "tsv": "tsv",
    "json": "json",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
}
_COMPRESSIONS = ("gz", "zst")
_NO_DATA = frozenset(
    {"config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
)
_SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
# `data/train-00000-of-00002.parquet`, whatever the split is called.
_SHARD = re.compile(r"(?:^|/)(\w+(?:\.\w+)*)-[0-9]{5}-of-[0-9]{5}(?:-\w+)?\.[a-z.]+$")
_MAX_CONFIGS = 200
_MAX_PATTERNS = 200
_MAX_WILDCARDS = 8
_LONGEST_PATTERN = 500
_LONGEST_NAME = 100
# Of a repository with more files only the first are looked at.
_MAX_ENTRIES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """The files of a split, which are one table."""

    config: str
    split: str
    # Such as csv or jsonl.gz.
    format: str
    files: tuple[GitEntry, ...]

    @property
    def key(self) -> str:
        return f"{self.config}/{self.split}"

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedView:
    """A view under the name that a query calls it by."""

    name: str
    view: DatasetView


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset at a commit, whose content the caller may read, and its views."""

    revision: Revision
    views: tuple[DatasetView, ...]

    @property
    def commit(self) -> str:
        return self.revision.commit


async def open_dataset(
    database: Database, caller: Caller | None, address: RepoAddress, revision: str = MAIN
) -> Dataset:
    """Return a dataset at a revision; raises what every download of it would raise."""
    found = await revisions.get_revision(database, caller, address, revision, right=Right.read)
    commit, views = await asyncio.to_thread(_load_views, found.folder, found.commit)
    return Dataset(
        revision=Revision(repo=found.repo, commit=commit, folder=found.folder), views=views
    )


@lru_cache(maxsize=200)
def _load_views(folder: Path, revision: str) -> tuple[str, tuple[DatasetView, ...]]:
    commit = str(trees.get_commit(bare_repos.open_repository(folder), revision).id)
    entries = trees.list_tree(folder, commit, recursive=True, limit=_MAX_ENTRIES)
    card = cards.read_card(folder, commit, RepoType.dataset)
    return commit, tuple(find_views(entries, card.data))


def format_of(path: str) -> str | None:
    """Return format and compression of a file, such as csv.gz; None when it is no table."""
    *_, first, last = ("", "", *path.rpartition("/")[2].lower().split("."))
    if last not in _COMPRESSIONS:
        return _FORMATS.get(last)
    # Parquet is compressed inside.
    return f"{_FORMATS[first]}.{last}" if first in _FORMATS and first != PARQUET else None


def find_views(entries: Iterable[GitEntry], card: Mapping[str, Any] | None) -> list[DatasetView]:
    """Return the views of a commit, those of the default configuration first."""
    tables = [entry for entry in entries if _is_table(entry)]
    configs = (card or {}).get("configs")
    if isinstance(configs, list) and configs:
        return list(_card_views(tables, configs))
    return list(_automatic_views(DEFAULT, tables))


def _is_table(entry: GitEntry) -> bool:
    if entry.type != "file" or entry.is_link or format_of(entry.path) is None:
        return False
    parts = entry.path.split("/")
    return parts[-1] not in _NO_DATA and not any(part.startswith((".", "__")) for part in parts)


def _card_views(tables: Sequence[GitEntry], configs: list[Any]) -> Iterator[DatasetView]:
    known = [config for config in configs[:_MAX_CONFIGS] if isinstance(config, dict)]
    seen = set[str]()
    # The one that is marked, or else the first, is meant where none is named.
    for config in sorted(known, key=lambda each: each.get("default") is not True):
        name = _safe_name(config.get("config_name"), DEFAULT)
        if name in seen:
            continue
        seen.add(name)
        folder = str(config.get("data_dir") or "").strip("/")
        inside = [e for e in tables if not folder or e.path.startswith(f"{folder}/")]
        data_files = config.get("data_files")
        if data_files is None:
            yield from _automatic_views(name, inside)
            continue
        for split, patterns in _patterns_by_split(data_files).items():
            chosen = _match(inside, patterns, folder)
            if chosen:
                yield _view(name, split, chosen)


def _safe_name(value: Any, otherwise: str) -> str:
    """Return a name that can stand in an address and in a key."""
    text = value if isinstance(value, str) else ""
    usable = 0 < len(text) <= _LONGEST_NAME and "/" not in text and text.isprintable()
    return text if usable and text not in {".", ".."} else otherwise


def _patterns_by_split(data_files: Any) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for item in data_files if isinstance(data_files, list) else [data_files]:
        if isinstance(item, str):
            found.setdefault(TRAIN, []).append(item)
        elif isinstance(item, dict) and "path" in item:
            split = _safe_name(item.get("split"), TRAIN)
            found.setdefault(split, []).extend(_strings(item["path"]))
        elif isinstance(item, dict):
            for split, paths in item.items():
                found.setdefault(_safe_name(split, TRAIN), []).extend(_strings(paths))
    return found


def _strings(value: Any) -> list[str]:
    return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)]


def _match(entries: Sequence[GitEntry], patterns: list[str], folder: str) -> list[GitEntry]:
    compiled = [
        expression
        for pattern in patterns[:_MAX_PATTERNS]
        if (expression := _compile(pattern.removeprefix("./"))) is not None
    ]
    start = len(folder) + 1 if folder else 0
    return [
        entry for entry in entries if any(each.fullmatch(entry.path[start:]) for each in compiled)
    ]


@lru_cache(maxsize=1000)
def _compile(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern of paths as an expression: `**` crosses folders, `*` and `?` do not.

    None for one with more wildcards than are worth trying.
    """
    parts = re.split(r"(\*\*/?|\*|\?|\[[^\]/]+\]|\{[^{}]*\})", pattern)
    if len(pattern) > _LONGEST_PATTERN or len(parts) // 2 > _MAX_WILDCARDS:
        return None
    return re.compile("".join(_expression(part) for part in parts))


def _expression(part: str) -> str:
    simple = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    if part in simple:
        return simple[part]
    if part.startswith("[") and part.endswith("]"):
        inner = part[1:-1]
        negated = "^" if inner[:1] in {"!", "^"} else ""
        ranges = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[len(negated) :])
        try:
            re.compile(f"[{negated}{ranges}]")
        except re.error:
            return re.escape(part)
        return f"[{negated}{ranges}]"
    if part.startswith("{") and part.endswith("}"):
        return "(?:" + "|".join(re.escape(each) for each in part[1:-1].split(",")) + ")"
    return re.escape(part)


def _automatic_views(config: str, tables: Sequence[GitEntry]) -> Iterator[DatasetView]:
    formats = Counter(format_of(entry.path) for entry in tables)
    if not formats:
        return
    # One table has one format: the most frequent, and of equals the first by name.
    chosen = min(formats, key=lambda name: (-formats[name], str(name)))
    splits = dict[str, list[GitEntry]]()
    for entry in tables:
        if format_of(entry.path) == chosen and (split := split_of(entry.path)):
            splits.setdefault(split, []).append(entry)
    if not splits:
        splits[TRAIN] = [entry for entry in tables if format_of(entry.path) == chosen]
    order = {name: number for number, name in enumerate(_SPLIT_WORDS)}
    for split in sorted(splits, key=lambda name: (order.get(name, len(order)), name)):
        yield _view(config, split, splits[split])


def split_of(path: str) -> str | None:
    """Return the split that a path names: by its shards, its name, or a folder."""
    if shard := _SHARD.search(path):
        return _safe_name(_canonical(shard[1]) or shard[1], TRAIN)
    *folders, name = path.split("/")
    stem = name.partition(".")[0]
    for part in (stem, *reversed(folders)):
        for word in re.split(r"[^a-z0-9]+", part.lower()):
            if found := _canonical(re.sub(r"[0-9]+$", "", word)):
                return found
    return None


def _canonical(word: str) -> str | None:
    return next((split for split, words in _SPLIT_WORDS.items() if word in words), None)


def _view(config: str, split: str, files: Sequence[GitEntry]) -> DatasetView:
    formats = Counter(format_of(entry.path) or "" for entry in files)
    chosen = min(formats, key=lambda name: (-formats[name], name))
    return DatasetView(
        config=config,
        split=split,
        format=chosen,
        files=tuple(entry for entry in files if format_of(entry.path) == chosen),
    )


def get_view(views: Iterable[DatasetView], config: str | None, split: str | None) -> DatasetView:
    """Return the view of a configuration and a split; the first that fits where one is not named."""
    for view in views:
        if config in {None, view.config} and split in {None, view.split}:
            return view
    if config is None and split is None:
        raise NoData
    raise ViewNotFound(f"{config or DEFAULT}/{split or TRAIN}")


def name_views(views: Sequence[DatasetView]) -> list[NamedView]:
    """Return the views of the default configuration, each named by its split."""
    if not views:
        raise NoData
    first = views[0].config
    return [NamedView(name=view.split, view=view) for view in views if view.config == first]


def choose_views(views: Sequence[DatasetView], names: Mapping[str, str]) -> list[NamedView]:
    """Return the views that a query names: by the name that it uses, the key of each."""
    by_key = {view.key: view for view in views}
    chosen = list[NamedView]()
    for name, key in names.items():
        if key not in by_key:
            raise ViewNotFound(key)
        chosen.append(NamedView(name=name, view=by_key[key]))
    return chosen
