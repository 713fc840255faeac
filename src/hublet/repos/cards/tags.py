"""The tags of a repository, formed from its metadata as the public service forms them."""

from collections.abc import Iterator
from typing import Any

from hublet.repos.records import RepoType

# Each name with what stands before its values.
_OF_MODELS = {
    "library_name": "",
    "pipeline_tag": "",
    "tags": "",
    "language": "",
    "datasets": "dataset:",
    "base_model": "base_model:",
    "license": "license:",
}
_OF_DATASETS = {
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
_MOST = 1000
_LONGEST = 200


def tags_of(data: dict[str, Any] | None, type: RepoType) -> tuple[str, ...]:  # noqa: A002 - the interface's word
    """Return each tag once; what is too long to be looked for is left out."""
    prefixes = _OF_DATASETS if type is RepoType.dataset else _OF_MODELS
    found = (
        prefix + value
        for name, prefix in prefixes.items()
        for value in _texts((data or {}).get(name))
    )
    return tuple(dict.fromkeys(tag for tag in found if len(tag) <= _LONGEST))[:_MOST]


def _texts(value: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.strip():
            yield item.strip()
