"""Evaluation results that a model states: in `.eval_results/*.yaml`, and in the `model-index` of its card.

Interface of the public service: a result names a dataset and a task of it. What is not written as the
public documents say is skipped: a push is not refused for a result.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from hublet.accounts.names import name_key
from hublet.core import yaml_loader
from hublet.core.errors import InvalidRequest
from hublet.core.yaml_loader import InvalidYaml
from hublet.repos.errors import EntryNotFound
from hublet.repos.git import trees
from hublet.repos.names import repo_name_key
from hublet.repos.records import EvaluationResult, RankedModel, RankedResult

FOLDER = ".eval_results"
README = "README.md"

MOST_RESULTS = 200
_MOST_FILES = 50
_LARGEST_FILE = 100_000
_LONGEST_NAME = 200
_LONGEST_NOTES = 1000
_LONGEST_URL = 2000
_LARGEST_VALUE = 1e15

# Of these metrics the smaller value is the better one.
_ERRORS = {"cer", "eer", "fid", "loss", "mae", "mape", "mse", "perplexity", "rmse", "ter", "wer"}
_COUNT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMBT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def read_evaluations(
    folder: Path, commit: str, card: dict[str, Any] | None
) -> tuple[EvaluationResult, ...]:
    """Return the results of a commit, those in files first; it blocks on the disk."""
    found = [*_in_files(folder, commit), *_in_card((card or {}).get("model-index"))]
    return tuple(found[:MOST_RESULTS])


def _in_files(folder: Path, commit: str) -> Iterator[EvaluationResult]:
    try:
        entries = trees.list_tree(folder, commit, path=FOLDER, recursive=False, limit=_MOST_FILES)
    except EntryNotFound:
        return
    for entry in entries:
        is_result = entry.path.endswith((".yaml", ".yml")) and entry.type == "file"
        if is_result and entry.lfs is None and not entry.is_link and entry.size <= _LARGEST_FILE:
            text = trees.read_blob(folder, entry.oid).decode(errors="replace")
            yield from parse_file(text, filename=entry.path)


def parse_file(text: str, *, filename: str) -> Iterator[EvaluationResult]:
    """Return the results of one file, which is a list of them or a single one."""
    try:
        data = yaml_loader.load(text)
    except InvalidYaml:
        return
    for item in islice(data if isinstance(data, list) else [data], MOST_RESULTS):
        if not isinstance(item, dict) or not isinstance(item.get("dataset"), dict):
            continue
        dataset = item["dataset"]
        yield from _result(
            dataset.get("id"),
            dataset.get("task_id"),
            item.get("value"),
            filename=filename,
            source=item.get("source"),
            notes=item.get("notes"),
        )


def _in_card(models: Any) -> Iterator[EvaluationResult]:
    """Return the results of a `model-index`; a task of it is the kind of task with the metric."""
    for model in _dicts(models):
        for result in _dicts(model.get("results")):
            dataset, task = result.get("dataset"), result.get("task")
            if not isinstance(dataset, dict) or not isinstance(task, dict):
                continue
            for metric in _dicts(result.get("metrics")):
                yield from _result(
                    dataset.get("type"),
                    f"{task.get('type')}:{metric.get('type')}",
                    metric.get("value"),
                    filename=README,
                    source=result.get("source"),
                    notes=metric.get("name"),
                )


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    items = value if isinstance(value, list) else []
    return (item for item in islice(items, MOST_RESULTS) if isinstance(item, dict))


def _result(
    dataset: Any, task_id: Any, value: Any, *, filename: str, source: Any, notes: Any
) -> Iterator[EvaluationResult]:
    key = dataset_key(dataset) if isinstance(dataset, str) else None
    if key is None or not isinstance(task_id, str) or not 0 < len(task_id) <= _LONGEST_NAME:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return
    if abs(value) > _LARGEST_VALUE:
        return
    yield EvaluationResult(
        dataset_key=key,
        task_id=_clean(task_id),
        value=float(value),
        filename=filename,
        source=_source(source),
        notes=_clean(notes[:_LONGEST_NOTES]) if isinstance(notes, str) else "",
    )


def _clean(text: str) -> str:
    # PostgreSQL cannot store U+0000.
    return text.replace("\x00", "").strip()


def _source(source: Any) -> dict[str, str]:
    """Return address, name and account of a source; a link that is none of the web is left out."""
    if not isinstance(source, dict):
        return {}
    texts = {
        name: _clean(source[name])
        for name in ("url", "name", "user", "org")
        if isinstance(source.get(name), str) and len(source[name]) <= _LONGEST_URL
    }
    return texts if texts.get("url", "").startswith(("https://", "http://")) else {}


def dataset_key(full_name: str) -> str | None:
    """Return the name of a dataset as names are compared; None for one without an owner."""
    owner, slash, name = full_name.strip().partition("/")
    if not slash or not owner or not name or "/" in name or len(full_name) > _LONGEST_NAME:
        return None
    return f"{name_key(owner)}/{repo_name_key(name)}".replace("\x00", "")


def is_error(task_id: str) -> bool:
    """Tell whether the smaller value is the better one, from the metric in the name of a task."""
    return task_id.rpartition(":")[2].casefold() in _ERRORS


def read_parameter_count(text: str) -> int:
    """Read a number of parameters such as 7B or 350000000."""
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        raise InvalidRequest("max_params must be a number of parameters, such as 7B or 500M.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def rank(results: Sequence[RankedResult]) -> list[RankedModel]:
    """Rank models by the best result of each; equal values share a rank."""
    best: dict[str, RankedResult] = {}
    for result in results:
        best.setdefault(result.model.id, result)
    ranked: list[RankedModel] = []
    for place, result in enumerate(best.values(), start=1):
        is_tied = ranked and ranked[-1].best.result.value == result.result.value
        ranked.append(RankedModel(rank=ranked[-1].rank if is_tied else place, best=result))
    return ranked
