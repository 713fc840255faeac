"""Takes out the titles that Pydantic and FastAPI make up from names."""

from collections.abc import Iterator
from typing import Any

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
    if isinstance(title, str) and _is_made_up(title, name):
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


def _is_made_up(title: str, name: str) -> bool:
    # FastAPI titles an answer without a model of its own "Response <function> <path> <method>".
    return _letters(title) == _letters(name) or title.startswith("Response ")


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum()).casefold()
