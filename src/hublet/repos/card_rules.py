"""Rules for the fields of a card, beyond what a commit needs: errors and warnings for its author."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from hublet.repos.records import RepoType

# The identifiers of the public hub (docs: Licenses).
_LICENSES = """
afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m
bigscience-bloom-rail-1.0 bigscience-openrail-m bsd bsd-2-clause bsd-3-clause
bsd-3-clause-clear bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-nc-2.0
cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0
cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0
cdla-permissive-2.0 cdla-sharing-1.0 creativeml-openrail-m deepfloyd-if-license ecl-2.0
epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 fair-noncommercial-research-license gemma gfdl
gpl gpl-2.0 gpl-3.0 grok2-community h-research intel-research isc lgpl lgpl-2.1 lgpl-3.0
lgpl-lr llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 lppl-1.3c mit mpl-2.0 ms-pl ncsa
odbl odc-by ofl-1.1 open-mdw openmdw-1.0 openrail openrail++ osl-3.0 other pddl postgresql
unknown unlicense wtfpl zlib
"""
LICENSES = frozenset(_LICENSES.split())
SDKS = ("gradio", "streamlit", "docker", "static")
COLORS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
LONGEST_SHORT_DESCRIPTION = 60

_LANGUAGE = re.compile("[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*|code|multilingual")
_PIPELINE_TAG = re.compile("[a-z0-9]+(-[a-z0-9]+)*")
_REPO_ID = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")

_NOBODY_ELSE_KNOWS = "is no {what}; nobody will find the repository by it."


def errors_of(data: dict[str, Any], type: RepoType) -> Iterator[str]:  # noqa: A002 - the interface's word
    """Return what is wrong with the fields of a card, a sentence each that names the field."""
    for path, value in _items(data, "license"):
        if isinstance(value, str) and value not in LICENSES:
            known = ", ".join(sorted(LICENSES))
            yield f'"{path}" must be one of [{known}]; for another one, write "other" and "license_name".'
    for path, value in _items(data, "base_model"):
        if isinstance(value, str) and not _REPO_ID.fullmatch(value):
            yield f'"{path}" must be the name of a model, as in ada/engine.'
    if "model-index" in data:
        yield from _list_errors("model-index", data["model-index"], _model_errors)
    if type is RepoType.space:
        yield from _space_errors(data)


def warnings_of(data: dict[str, Any]) -> Iterator[str]:
    """Return what a card would better say otherwise."""
    for name, pattern, what in (
        ("language", _LANGUAGE, "code of a language (ISO 639), such as en"),
        ("pipeline_tag", _PIPELINE_TAG, "task, such as text-generation"),
        ("datasets", _REPO_ID, "name of a dataset, such as ada/words"),
    ):
        for path, value in _items(data, name):
            if isinstance(value, str) and not pattern.fullmatch(value):
                yield f'"{path}" ' + _NOBODY_ELSE_KNOWS.format(what=what)


def _items(data: dict[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """Return the values of a field that may be a list, each with its path."""
    value = data.get(name)
    if isinstance(value, list):
        yield from ((f"{name}[{place}]", item) for place, item in enumerate(value))
    elif value is not None:
        yield name, value


def _space_errors(data: dict[str, Any]) -> Iterator[str]:
    for name, known in (("sdk", SDKS), ("colorFrom", COLORS), ("colorTo", COLORS)):
        if data.get(name) is not None and data[name] not in known:
            yield f'"{name}" must be one of [{", ".join(known)}].'
    for name in ("title", "emoji", "app_file", "short_description"):
        if data.get(name) is not None and not isinstance(data[name], str):
            yield f'"{name}" must be a string.'
    description = data.get("short_description")
    if isinstance(description, str) and len(description) > LONGEST_SHORT_DESCRIPTION:
        yield f'"short_description" must have at most {LONGEST_SHORT_DESCRIPTION} characters.'
    if not isinstance(data.get("pinned"), bool | None):
        yield '"pinned" must be true or false.'


Errors = Callable[[str, dict[str, Any]], Iterator[str]]


def _list_errors(path: str, value: Any, errors: Errors) -> Iterator[str]:
    if not isinstance(value, list):
        yield f'"{path}" must be an array.'
        return
    for place, item in enumerate(value):
        if isinstance(item, dict):
            yield from errors(f"{path}[{place}]", item)
        else:
            yield f'"{path}[{place}]" must be an object.'


def _model_errors(path: str, model: dict[str, Any]) -> Iterator[str]:
    yield from _missing(path, model, "name", "results")
    if "results" in model:
        yield from _list_errors(f"{path}.results", model["results"], _result_errors)


def _result_errors(path: str, result: dict[str, Any]) -> Iterator[str]:
    yield from _missing(path, result, "task", "metrics")
    for name, fields in (("task", ("type",)), ("dataset", ("type", "name"))):
        if isinstance(result.get(name), dict):
            yield from _missing(f"{path}.{name}", result[name], *fields)
        elif name in result:
            yield f'"{path}.{name}" must be an object.'
    if "metrics" in result:
        yield from _list_errors(f"{path}.metrics", result["metrics"], _metric_errors)


def _metric_errors(path: str, metric: dict[str, Any]) -> Iterator[str]:
    yield from _missing(path, metric, "type", "value")


def _missing(path: str, value: dict[str, Any], *names: str) -> Iterator[str]:
    return (f'"{path}.{name}" is required.' for name in names if value.get(name) is None)
