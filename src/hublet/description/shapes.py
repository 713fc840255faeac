"""Lays a schema out as a tree of fields, small ones in place and big ones by name."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hublet.description.records import Field, Shape
from hublet.description.words import (
    Schema,
    Schemas,
    map_values_of,
    resolve,
    rules_in_words,
    type_in_words,
    variants_of,
)

# A named object below the first level is shown in place up to this many fields.
_SMALL = 8
_DEEPEST = 4


def shape_of(schema: Schema, schemas: Schemas) -> Shape:
    return _shape(schema, schemas, depth=0)


def links_in(shape: Shape) -> Iterator[str]:
    if shape.link:
        yield shape.link
    for field in shape.fields:
        yield from links_in(field.shape)


def _shape(schema: Schema, schemas: Schemas, *, depth: int) -> Shape:
    name, target = resolve(schema, schemas)
    inside, holder = _innermost(target, schemas)
    shape = Shape(
        type=type_in_words(target, schemas),
        rules=rules_in_words(target, schemas),
        text=str(target.get("description", "")) if depth else "",
    )
    link = inside or name
    if link and depth and _is_big(holder, schemas, depth):
        return replace(shape, link=link, text="")
    if depth > _DEEPEST:
        return shape
    return replace(shape, fields=tuple(_fields(holder, schemas, depth=depth + 1)))


def _innermost(schema: Schema, schemas: Schemas) -> tuple[str | None, Schema]:
    """Step through arrays, maps and "or null" to the schema that has the fields."""
    name: str | None = None
    while (step := _step_inside(schema)) is not None:
        found, schema = resolve(step, schemas)
        name = found or name
    return name, schema


def _step_inside(schema: Schema) -> Schema | None:
    variants = [part for part in variants_of(schema) if part.get("type") != "null"]
    if len(variants) == 1:
        return variants[0]
    items = schema.get("items")
    return items if isinstance(items, dict) else map_values_of(schema)


def _fields(schema: Schema, schemas: Schemas, *, depth: int) -> Iterator[Field]:
    required = schema.get("required", [])
    for name, part in schema.get("properties", {}).items():
        yield Field(name=name, required=name in required, shape=_shape(part, schemas, depth=depth))
    for number, part in enumerate(variants_of(schema), start=1):
        if _size(part, schemas):
            label = _variant_name(part, schemas, number=number)
            yield Field(name=label, required=False, shape=_shape(part, schemas, depth=depth))


def _variant_name(schema: Schema, schemas: Schemas, *, number: int) -> str:
    name, target = resolve(schema, schemas)
    for field, part in target.get("properties", {}).items():
        if "const" in part:
            return f"when {field} is {part['const']}"
    return f"variant {number}: {name}" if name else f"variant {number}"


def _is_big(schema: Schema, schemas: Schemas, depth: int) -> bool:
    size = _size(schema, schemas)
    return size > _SMALL or (size > 0 and depth >= _DEEPEST)


def _size(schema: Schema, schemas: Schemas, seen: frozenset[str] = frozenset()) -> int:
    """Count the fields of a schema at every level; a schema within itself counts as huge."""
    name, target = resolve(schema, schemas)
    if name in seen:
        return _SMALL + 1
    seen = seen | {name} if name else seen
    parts: list[Any] = [*target.get("properties", {}).values()]
    inside = _step_inside(target)
    nested = parts + ([inside] if inside is not None else variants_of(target))
    return len(parts) + sum(_size(part, schemas, seen) for part in nested)
