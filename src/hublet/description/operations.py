"""Completes what FastAPI found out about one operation."""

from http import HTTPStatus
from typing import Any

from hublet.core.light_dataclasses import dataclass
from hublet.description.errors import (
    error_response,
    header_references,
    shared_reference,
    statuses_of,
)
from hublet.description.tags import TAGS
from hublet.description.titles import drop_titles


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    path: str
    method: str
    function: str
    slashes: frozenset[str]


def complete(found: dict[str, Any], route: Route) -> dict[str, Any]:
    if not found.get("tags") or not set(found["tags"]) <= TAGS.keys():
        raise ValueError(
            f"The operation {route.function} needs a tag from hublet.description.tags;"
            f" it has {found.get('tags', 'none')}."
        )
    generated = route.function.replace("_", " ").title()
    summary = found["summary"]
    security = found.get("security", [])
    scopes = [scope for choice in security for scope in choice.get("bearer", [])]
    operation = found | {
        "summary": summary.capitalize() if summary == generated else summary,
        "description": " ".join(filter(None, (found.get("description"), scope_sentence(scopes)))),
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
