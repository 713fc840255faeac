"""Operations of the OpenAPI description: completes what FastAPI found out about each."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from hublet.core.dataclasses import dataclass
from hublet.description.error_responses import (
    error_response,
    header_references,
    shared_reference,
    statuses_of,
)
from hublet.description.tags import TAGS

_MAPS = ("properties", "patternProperties", "$defs")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "propertyNames", "contains", "not", "contentSchema")


def drop_titles(schema: Any, *, name: str = "") -> None:
    """Drop, in place, each title that only repeats the name of its field.

    `name` is what the schema itself is called: a field, a parameter, a component.
    """
    if not isinstance(schema, dict):
        return
    title = schema.get("title")
    if isinstance(title, str) and _is_generated(title, name):
        del schema["title"]
    for part_name, part in _parts(schema):
        drop_titles(part, name=part_name)


def _parts(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    # Only places that hold schemas are visited: a `default` or an example may well
    # be an object with a field called "title", and that one is data.
    for key in _MAPS:
        yield from schema.get(key, {}).items()
    for key in _LISTS:
        yield from (("", part) for part in schema.get(key, []))
    for key in _SINGLE:
        if key in schema:
            yield "", schema[key]


def _is_generated(title: str, name: str) -> bool:
    # FastAPI titles an answer without a model of its own "Response <function> <path> <method>".
    return _letters(title) == _letters(name) or title.startswith("Response ")


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum()).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRoute:
    path: str
    method: str
    function: str
    slashes: frozenset[str]


def complete(raw: dict[str, Any], route: DescribedRoute) -> dict[str, Any]:
    if not raw.get("tags") or not set(raw["tags"]) <= TAGS.keys():
        raise ValueError(
            f"The operation {route.function} needs a tag from hublet.description.tags;"
            f" it has {raw.get('tags', 'none')}."
        )
    generated = route.function.replace("_", " ").title()
    summary = raw["summary"]
    security = raw.get("security", [])
    scopes = [scope for choice in security for scope in choice.get("bearer", [])]
    operation = raw | {
        "summary": summary.capitalize() if summary == generated else summary,
        "description": " ".join(filter(None, (raw.get("description"), scope_sentence(scopes)))),
        "operationId": route.function,
        "security": security,
    }
    for parameter in operation.get("parameters", []):
        drop_titles(parameter["schema"], name=parameter["name"])
        if parameter["name"] in route.slashes:
            parameter["x-may-contain-slashes"] = True
    for content in operation.get("requestBody", {}).get("content", {}).values():
        drop_titles(content.get("schema"))
    operation["responses"] = _responses(operation)
    return operation


def scope_sentence(scopes: list[str]) -> str:
    names = [f"`{scope}`" for scope in scopes]
    if len(names) == 1:
        return f"Needs the scope {names[0]}."
    return f"Needs the scopes {', '.join(names[:-1])} and {names[-1]}." if names else ""


def _responses(operation: dict[str, Any]) -> dict[str, Any]:
    own = {
        status: _response(status, response)
        for status, response in operation["responses"].items()
        if not _is_automatic(response)
    }
    shared = {status: shared_reference(status) for status in statuses_of(operation)}
    return dict(sorted((shared | own).items()))


def _is_automatic(response: dict[str, Any]) -> bool:
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref", "").endswith("/HTTPValidationError"))


def _response(status: str, response: dict[str, Any]) -> dict[str, Any]:
    """Complete what a route says about one of its answers."""
    if response["description"] == "Successful Response":
        response["description"] = HTTPStatus(int(status)).phrase
    for content in response.get("content", {}).values():
        drop_titles(content.get("schema"))
    if status >= "400" and "content" not in response:
        full = error_response(status, sentence=response["description"])
        return full | {"headers": full["headers"] | response.get("headers", {})}
    return response | {"headers": header_references("X-Request-Id") | response.get("headers", {})}
