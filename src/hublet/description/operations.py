"""Operations of the OpenAPI description: completes what FastAPI found out about each, and the tags that
group them, in the order of the interface.
"""

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

# Interface 1 names the first 27 and their order; the last two are our own.
TAGS = {
    "auth": "Who the caller is, and taking leaked credentials out of use.",
    "models": "Model repositories: information, files, branches and tags.",
    "kernels": "Kernel repositories: compute kernels and their builds.",
    "datasets": "Dataset repositories: information, files, branches and tags.",
    "sql-console": "Saved queries over the data of a dataset.",
    "discussions": "Discussions and pull requests, with their comments.",
    "spaces": "Space repositories and the apps that run from them.",
    "repo-search": "Finding repositories by words.",
    "repos": "Creating, moving, copying and deleting repositories of any type.",
    "users": "People: overview, followers, likes, own settings.",
    "orgs": "Organizations: overview, members, roles, audit log.",
    "service-accounts": "Accounts of an organization that belong to a program, not a person.",
    "jobs": "Programs that run once, on a trigger or on a schedule.",
    "resource-groups": "Parts of an organization with members and rules of their own.",
    "papers": "Papers, their authors and their links to repositories.",
    "collections": "Lists of repositories and papers that somebody put together.",
    "buckets": "File storage without git.",
    "containers": "Image repositories for a container registry.",
    "notifications": "The inbox, what is watched, and what is sent by mail.",
    "inference-providers": "Inference through outside providers.",
    "inference-endpoints": "Inference on machines of one's own.",
    "mcp": "Tools for the Model Context Protocol.",
    "oauth": "Sign-in with OAuth 2 and OpenID Connect, device codes, token exchange.",
    "docs": "This description in three forms: JSON, Markdown and a page.",
    "webhooks": "Calls to a URL, or jobs, that follow what happens on the hub.",
    "scim": "Members of an organization managed by an identity provider.",
    "agents": "What coding agents ask of a hub.",
    "administration": "What only an administrator of this hub may do.",
    "operations": "Health and figures for those who run this hub.",
}


def tag_objects() -> list[dict[str, Any]]:
    return [{"name": name, "description": sentence} for name, sentence in TAGS.items()]


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
            f"The operation {route.function} needs a tag from hublet.description.operations;"
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
