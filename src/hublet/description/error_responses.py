"""Error responses that all operations share in the description: one form and its headers."""

from http import HTTPStatus
from typing import Any

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "The one form of every error.",
    "properties": {"error": {"type": "string", "description": "What went wrong, in a sentence."}},
    "required": ["error"],
    "additionalProperties": False,
}

_TEXT = {"type": "string"}

HEADERS: dict[str, Any] = {
    "X-Request-Id": {
        "description": "Names this request in the logs of the hub.",
        "required": True,
        "schema": _TEXT,
    },
    "X-Error-Code": {
        "description": "A code that client libraries know, where there is one.",
        "schema": _TEXT,
    },
    "X-Error-Message": {
        "description": "The sentence of the body again, when it is plain ASCII.",
        "schema": _TEXT,
    },
    "WWW-Authenticate": {
        "description": "How to authenticate: `Bearer`.",
        "required": True,
        "schema": _TEXT,
    },
    "Retry-After": {
        "description": "Seconds to wait before the same request may succeed.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "RateLimit": {
        "description": 'What is left of the limit, as in `"api";r=0;t=55`.',
        "required": True,
        "schema": _TEXT,
    },
    "RateLimit-Policy": {
        "description": 'The limit itself, as in `"fixed window";"api";q=500;w=300`.',
        "required": True,
        "schema": _TEXT,
    },
}

_SENTENCES = {
    "400": "The request has the wrong shape, or breaks a rule that the sentence names.",
    "401": "There is no token, or it is not valid any more.",
    "403": "The token lacks a scope, or its owner lacks the role or the plan.",
    "404": "It does not exist, or it is private to somebody else.",
    "413": "The body is larger than this hub takes.",
    "429": "There were too many requests; try again after the time in `Retry-After`.",
    "503": "A part of the hub cannot answer now; the same request may succeed later.",
}

_MORE_HEADERS = {
    "401": ["WWW-Authenticate"],
    "429": ["Retry-After", "RateLimit", "RateLimit-Policy"],
    "503": ["Retry-After"],
}


def header_references(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def error_response(status: str, *, sentence: str | None = None) -> dict[str, Any]:
    """Return the error form for a status; `sentence` says it better than the status can."""
    return {
        "description": sentence or _SENTENCES.get(status) or HTTPStatus(int(status)).phrase,
        "headers": header_references(
            "X-Request-Id", "X-Error-Code", "X-Error-Message", *_MORE_HEADERS.get(status, [])
        ),
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }


def shared_responses() -> dict[str, Any]:
    return {f"Error{status}": error_response(status) for status in _SENTENCES}


def shared_reference(status: str) -> dict[str, Any]:
    return {"$ref": f"#/components/responses/Error{status}"}


def statuses_of(operation: dict[str, Any]) -> list[str]:
    """List the errors that an operation can answer with, judged by what it takes."""
    parameters = operation.get("parameters", [])
    has_body = "requestBody" in operation
    applies = {
        # Also without any input: the edge refuses addresses with a NUL character.
        "400": True,
        "401": bool(operation["security"]),
        "403": bool(operation["security"]),
        "404": any(parameter["in"] == "path" for parameter in parameters),
        "413": has_body,
        "429": True,
        "503": True,
    }
    return [status for status, does in applies.items() if does]
