"""Makes up a value that a schema accepts, for the example of an operation."""

import re
from typing import Any

from hublet.description.words import Schema, Schemas, resolve, variants_of

_DEEPEST = 6

_BY_FORMAT = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "uri": "https://example.com/hook",
    "email": "ada@example.com",
}

# Tried in this order against the pattern and the length limits of a text.
_TEXTS = (
    "text",
    "0123456789abcdef01234567",
    "ada",
    "ada/engine",
    "/data",
    "2026-01-31T12:00:00Z",
    "KEY",
    "1",
    "x" * 64,
)

_SCALARS = {"boolean": True, "null": None}


def example_of(schema: Schema, schemas: Schemas, *, name: str = "") -> Any:
    """Make an example; one that the schema brings itself is taken first."""
    return _example(schema, schemas, name=name, depth=0)


def _example(schema: Schema, schemas: Schemas, *, name: str, depth: int) -> Any:
    _, schema = resolve(schema, schemas)
    given = _given(schema)
    if given:
        return given[0]
    if variants := variants_of(schema):
        first = next((part for part in variants if part.get("type") != "null"), variants[0])
        return _example(first, schemas, name=name, depth=depth)
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, schemas, depth=depth)
    if kind == "array":
        return [_example(schema.get("items", {}), schemas, name=name, depth=depth + 1)]
    if kind in {"integer", "number"}:
        return _number(schema)
    return _SCALARS[kind] if kind in _SCALARS else _text(schema, name)


def _given(schema: Schema) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    return list(schema.get("examples") or schema.get("enum") or [])


def _object(schema: Schema, schemas: Schemas, *, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    # An update has no required field; its first one shows the idea.
    wanted = schema.get("required") or list(properties)[:1]
    if depth > _DEEPEST:
        return {}
    return {
        name: _example(properties[name], schemas, name=name, depth=depth + 1)
        for name in wanted
        if name in properties
    }


def _number(schema: Schema) -> int | float:
    low: int | float = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high: int | float = schema.get("maximum", low)
    return min(low, high)


def _text(schema: Schema, name: str) -> str:
    if schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    pattern = re.compile(schema.get("pattern", ""))
    lengths = range(schema.get("minLength", 0), schema.get("maxLength", 10_000) + 1)
    fitting = (text for text in (name, *_TEXTS) if len(text) in lengths and pattern.search(text))
    return next((text for text in fitting if text), name or "text")
