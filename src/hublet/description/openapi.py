"""OpenAPI description of an app, built from its routes."""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts

import hublet
from hublet.description.error_responses import ERROR_SCHEMA, HEADERS, shared_responses
from hublet.description.operations import DescribedRoute, complete, drop_titles, tag_objects

_ABOUT = """\
A hub for repositories, webhooks, jobs and notifications that you run yourself.

The public client libraries work with it: set `HF_ENDPOINT` to the address of this hub.
Bodies are JSON unless an operation says otherwise, times are ISO 8601 in UTC with a `Z`,
and every answer carries `X-Request-Id`."""

_METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")

_BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "An access token of this hub: `Authorization: Bearer <token>`.",
}


def describe(app: FastAPI, *, base_url: str) -> dict[str, Any]:
    """Describe every route of the app that is meant to be seen.

    The name of a route's function is its operation id, so two routes may not share one.
    """
    routes = _routes_by_operation(app)
    generated = _generate_with_fastapi(app, base_url=base_url)
    return {
        "openapi": generated["openapi"],
        "info": generated["info"],
        "servers": generated["servers"],
        "tags": generated["tags"],
        "security": [{"bearer": []}],
        "paths": _paths(generated["paths"], routes),
        "components": _components(generated.get("components", {})),
    }


def _generate_with_fastapi(app: FastAPI, *, base_url: str) -> dict[str, Any]:
    return get_openapi(
        title="Hublet",
        version=hublet.__version__,
        description=_ABOUT,
        routes=app.routes,
        tags=tag_objects(),
        servers=[{"url": base_url}],
        separate_input_output_schemas=app.separate_input_output_schemas,
    )


def to_json(description: dict[str, Any]) -> bytes:
    return json.dumps(description, ensure_ascii=False, indent=2).encode() + b"\n"


def _routes_by_operation(app: FastAPI) -> dict[tuple[str, str], DescribedRoute]:
    functions: dict[str, DescribedRoute] = {}
    for route in _visible_routes(app):
        if other := functions.get(route.function):
            raise ValueError(
                f"Two operations are called {route.function}: {other.method.upper()} {other.path}"
                f" and {route.method.upper()} {route.path}. Give one function another name."
            )
        functions[route.function] = route
    return {(route.path, route.method): route for route in functions.values()}


def _visible_routes(app: FastAPI) -> Iterator[DescribedRoute]:
    for context in iter_route_contexts(app.routes):
        if not isinstance(context.original_route, APIRoute) or not context.include_in_schema:
            continue
        for method in sorted(context.methods or ()):
            yield DescribedRoute(
                path=context.path_format or "",
                method=method.lower(),
                function=context.original_route.endpoint.__name__,
                slashes=frozenset(
                    re.findall(r"{(\w+):(?:path|repo|revision)}", context.path or "")
                ),
            )


def _paths(paths: dict[str, Any], routes: dict[tuple[str, str], DescribedRoute]) -> dict[str, Any]:
    # FastAPI keeps the methods of a route in a set, so their order is put right here.
    return {
        path: {
            method: complete(operations[method], routes[path, method])
            for method in _METHODS
            if method in operations
        }
        for path, operations in paths.items()
    }


def _components(generated: dict[str, Any]) -> dict[str, Any]:
    schemas = {
        name: schema
        for name, schema in (
            generated.get("schemas", {}) | {"Error": deepcopy(ERROR_SCHEMA)}
        ).items()
        if name not in {"HTTPValidationError", "ValidationError"}
    }
    for name, schema in schemas.items():
        drop_titles(schema, name=name)
    return {
        "schemas": dict(sorted(schemas.items())),
        "responses": shared_responses(),
        "headers": deepcopy(HEADERS),
        "securitySchemes": generated.get("securitySchemes", {}) | {"bearer": _BEARER},
    }
