"""Tag lists: the known tags of models and datasets, and those of public cards, by their type."""

from collections import Counter
from collections.abc import Iterable
from typing import get_args

from hublet.core.database import Reader
from hublet.repos.browse import store, taxonomy
from hublet.repos.browse.records import ListedTag
from hublet.repos.browse.schemas import DatasetTagType, ModelTagType
from hublet.repos.records import RepoType

# Beside the known ones, of each type, the most used first.
MOST_OF_TYPE = 1000
MODEL_TYPES: tuple[str, ...] = get_args(ModelTagType)
DATASET_TYPES: tuple[str, ...] = get_args(DatasetTagType)
OTHER = "other"

# Types of tags of models that stand behind a prefix; those of datasets all do, but "other".
_MODEL_PREFIXED = ("dataset", "bucket", "license", "arxiv", "doi", "region", "deploy")


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
    known = _known_of_models() if type is RepoType.model else _known_of_datasets()
    listed = {each: [tag for tag in known if tag.type == each] for each in wanted}
    known_ids = {tag.id for tag in known}
    counted = Counter(tag for tags in await store.tags_in_use(conn, type) for tag in tags)
    found = dict.fromkeys(listed, 0)
    for tag, _ in counted.most_common():
        tag_type, label = _split(tag, type)
        if tag in known_ids or found.get(tag_type, MOST_OF_TYPE) >= MOST_OF_TYPE:
            continue
        found[tag_type] += 1
        listed[tag_type].append(ListedTag(id=tag, label=label, type=tag_type))
    return listed


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
