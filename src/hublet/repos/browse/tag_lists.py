"""Tag lists: the known tags of models and datasets, and those of public cards, by their type."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, get_args

from hublet.core import clock
from hublet.core.database import Reader
from hublet.core.hub import Hub
from hublet.repos import list_index_store
from hublet.repos.browse import lists, store, taxonomy
from hublet.repos.browse.records import ListedTag, ListOrder, ListSort, RepoFilter
from hublet.repos.browse.schemas import DatasetTagType, ModelTagType
from hublet.repos.records import Repo, RepoType

# Beside the known ones, of each type, the most used first.
MOST_OF_TYPE = 1000
MODEL_TYPES: tuple[str, ...] = get_args(ModelTagType)
DATASET_TYPES: tuple[str, ...] = get_args(DatasetTagType)
OTHER = "other"

# Types of tags of models that stand behind a prefix; those of datasets all do, but "other".
_MODEL_PREFIXED = ("dataset", "bucket", "license", "arxiv", "doi", "region", "deploy")


# So long a list is shown again before it is made again: it reads all public repositories.
KEPT_SECONDS = 60.0
# Of hubs in one process there is more than one in tests alone.
_MOST_HUBS = 8
# Of tasks: how many of the models of the moment are looked at, and how many of each are named.
_MOST_MODELS = 1000
_MODELS_OF_TASK = 10


class _Kept:
    """What was made of public repositories not long ago, for each hub of this process."""

    def __init__(self) -> None:
        self._made = dict[int, tuple[Hub, dict[str, tuple[float, Any]]]]()

    def find(self, hub: Hub, name: str) -> Any | None:
        known, made = self._made.get(id(hub), (None, {}))
        made_at, value = made.get(name, (-KEPT_SECONDS, None))
        is_current = known is hub and clock.monotonic() - made_at < KEPT_SECONDS
        return value if is_current else None

    def put(self, hub: Hub, name: str, value: Any) -> None:
        known, made = self._made.get(id(hub), (None, {}))
        if known is not hub:
            made = {}
            while len(self._made) >= _MOST_HUBS:
                del self._made[next(iter(self._made))]
        made[name] = (clock.monotonic(), value)
        self._made[id(hub)] = (hub, made)


_kept = _Kept()


async def list_model_tags(conn: Reader, *, only: str | None) -> dict[str, list[ListedTag]]:
    """Return the tags of models by type, or those of one type."""
    return await _list_tags(conn, RepoType.model, [only] if only else MODEL_TYPES)


async def list_dataset_tags(conn: Reader, *, only: str | None) -> dict[str, list[ListedTag]]:
    """Return the tags of datasets by type, or those of one type."""
    return await _list_tags(conn, RepoType.dataset, [only] if only else DATASET_TYPES)


async def _list_tags(
    conn: Reader,
    type: RepoType,  # noqa: A002 - the interface's word
    wanted: Iterable[str],
) -> dict[str, list[ListedTag]]:
    listed: dict[str, list[ListedTag]] | None = _kept.find(conn.hub, f"tags of {type}")
    if listed is None:
        in_use = await list_index_store.tags_in_use(conn, type)
        listed = await asyncio.to_thread(_sorted_tags, type, in_use)
        _kept.put(conn.hub, f"tags of {type}", listed)
    return {each: listed[each] for each in wanted}


def _sorted_tags(
    type: RepoType,  # noqa: A002 - as above
    in_use: Iterable[str],
) -> dict[str, list[ListedTag]]:
    """Return the known tags by type, and behind them those in use, the most used first."""
    is_model = type is RepoType.model
    known = _known_of_models() if is_model else _known_of_datasets()
    types = MODEL_TYPES if is_model else DATASET_TYPES
    listed = {each: [tag for tag in known if tag.type == each] for each in types}
    known_ids = {tag.id for tag in known}
    counted = Counter(tag for tags in in_use for tag in json.loads(tags))
    found = dict.fromkeys(listed, 0)
    for tag, _ in counted.most_common():
        tag_type, label = _split(tag, type)
        if tag in known_ids or found.get(tag_type, MOST_OF_TYPE) >= MOST_OF_TYPE:
            continue
        found[tag_type] += 1
        listed[tag_type].append(ListedTag(id=tag, label=label, type=tag_type))
    return listed


async def list_task_models(conn: Reader) -> dict[str, list[str]]:
    """Return the names of public models by the task that their card names, the best first."""
    listed: dict[str, list[str]] | None = _kept.find(conn.hub, "models of tasks")
    if listed is None:
        listed = {}
        best = await store.list_trending(conn, RepoType.model, limit=_MOST_MODELS)
        for model in best:
            _add_model(listed, model)
        if len(best) == _MOST_MODELS:
            # Tasks that are rare have none among the best.
            for task in taxonomy.tasks().keys() - listed.keys():
                filters = RepoFilter(type=RepoType.model, tags=(task,))
                for model in await lists.list_repos(conn, None, filters, order=_BEST, limit=20):
                    _add_model(listed, model)
        _kept.put(conn.hub, "models of tasks", listed)
    return listed


_BEST = ListOrder(sort=ListSort.likes)


def _add_model(listed: dict[str, list[str]], model: Repo) -> None:
    task = (model.card or {}).get("pipeline_tag")
    if isinstance(task, str) and len(named := listed.setdefault(task, [])) < _MODELS_OF_TASK:
        named.append(model.full_name)


def _split(tag: str, type: RepoType) -> tuple[str, str]:  # noqa: A002 - as above
    """Return the type and the label of a tag from a card."""
    prefix, colon, value = tag.partition(":")
    prefixed = _MODEL_PREFIXED if type is RepoType.model else DATASET_TYPES
    if colon and value and prefix in prefixed and prefix != OTHER:
        return prefix, value
    return OTHER, tag


def _known_of_models() -> list[ListedTag]:
    return [
        *(
            ListedTag(id=task.id, label=task.label, type="pipeline_tag", subtype=task.modality)
            for task in taxonomy.tasks().values()
        ),
        *_labelled("library", taxonomy.libraries(), prefix=""),
        *_labelled("language", taxonomy.languages(), prefix=""),
        *_prefixed("license", taxonomy.licenses()),
    ]


def _known_of_datasets() -> list[ListedTag]:
    return [
        *(
            ListedTag(
                id=f"task_categories:{task.id}",
                label=task.id,
                type="task_categories",
                subtype=task.modality,
            )
            for task in taxonomy.tasks().values()
        ),
        *_prefixed("size_categories", taxonomy.dataset_sizes()),
        *_labelled("language", taxonomy.languages(), prefix="language:"),
        *_prefixed("license", taxonomy.licenses()),
    ]


def _labelled(type: str, labels: dict[str, str], *, prefix: str) -> list[ListedTag]:  # noqa: A002
    return [ListedTag(id=prefix + id_, label=label, type=type) for id_, label in labels.items()]


def _prefixed(type: str, values: Iterable[str]) -> list[ListedTag]:  # noqa: A002
    return [ListedTag(id=f"{type}:{value}", label=value, type=type) for value in values]
