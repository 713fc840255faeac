"""Examples of operations: values that a schema accepts, and the curl command that sends them."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from hublet.description.shapes import Schema, Schemas, resolve, variants_of

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
    given = _stated_examples(schema)
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


def _stated_examples(schema: Schema) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    return list(schema.get("examples") or schema.get("enum") or [])


def _object(schema: Schema, schemas: Schemas, *, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    # An update has no required field; its first one shows the idea.
    names = schema.get("required") or list(properties)[:1]
    if depth > _DEEPEST:
        return {}
    return {
        name: _example(properties[name], schemas, name=name, depth=depth + 1)
        for name in names
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


_WIDTH = 88


def curl_of(
    *, method: str, url: str, operation: dict[str, Any], schemas: Schemas, token: bool
) -> str:
    """Write the command; `$HF_TOKEN` and the parts of the path stay shell variables."""
    command = "curl" if method == "GET" else f"curl -X {method}"
    parts = [f'{command} "{_path_with_variables(url)}{_query(operation, schemas)}"']
    if token:
        parts.append('-H "Authorization: Bearer $HF_TOKEN"')
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        parts += _body_options(media_type, example_of(content.get("schema", {}), schemas))
        break
    line = " ".join(parts)
    return line if len(line) <= _WIDTH else " \\\n  ".join(parts)


def _path_with_variables(url: str) -> str:
    return re.sub(r"{(\w+)}", lambda match: "$" + _shell_name(match[1]), url)


def _shell_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _query(operation: dict[str, Any], schemas: Schemas) -> str:
    pairs = [
        (parameter["name"], example_of(parameter["schema"], schemas, name=parameter["name"]))
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter.get("required")
    ]
    return f"?{urlencode(pairs, doseq=True)}" if pairs else ""


def _body_options(media_type: str, example: Any) -> Iterator[str]:
    if media_type == "application/x-www-form-urlencoded" and isinstance(example, dict):
        for name, value in example.items():
            yield f"--data-urlencode {shlex.quote(f'{name}={value}')}"
        return
    yield f'-H "Content-Type: {media_type}"'
    if media_type == "application/json":
        yield f"-d {shlex.quote(json.dumps(example, ensure_ascii=False))}"
    else:
        yield "--data-binary @FILE"
