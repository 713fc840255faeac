"""Shapes of JSON schemas for readers: types and rules in words, fields as a tree."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hublet.description.records import Field, Shape

Schema = dict[str, Any]
Schemas = dict[str, Schema]


def resolve(schema: Schema, schemas: Schemas) -> tuple[str | None, Schema]:
    """Follow a reference to a named schema; what stands beside the reference wins."""
    reference = schema.get("$ref")
    if reference is None:
        return None, schema
    name = str(reference).rsplit("/", 1)[-1]
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return name, schemas[name] | beside


def variants_of(schema: Schema) -> list[Schema]:
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return list(schema[key])
    return []


def type_in_words(schema: Schema, schemas: Schemas) -> str:
    _, schema = resolve(schema, schemas)
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if variants := variants_of(schema):
        return " or ".join(dict.fromkeys(type_in_words(part, schemas) for part in variants))
    kind = schema.get("type", "string" if "enum" in schema else "any value")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"array of {type_in_words(schema.get('items', {}), schemas)}"
    if kind == "object":
        return _object_in_words(schema, schemas)
    return f"{kind} ({schema['format']})" if "format" in schema else str(kind)


def map_values_of(schema: Schema) -> Schema | None:
    """Return what the values of a map must be; None for an object with named fields."""
    if "properties" in schema:
        return None
    # Pydantic writes a map whose keys keep to a pattern as `patternProperties`.
    by_pattern = list(schema.get("patternProperties", {}).values())
    values = by_pattern[0] if by_pattern else schema.get("additionalProperties")
    return values if isinstance(values, dict) else None


def _object_in_words(schema: Schema, schemas: Schemas) -> str:
    values = map_values_of(schema)
    return "object" if values is None else f"object string->{type_in_words(values, schemas)}"


def rules_in_words(schema: Schema, schemas: Schemas) -> tuple[str, ...]:
    """List what a value must keep to, beyond its type."""
    _, schema = resolve(schema, schemas)
    rules = [rule for part in variants_of(schema) for rule in rules_in_words(part, schemas)]
    rules += _describe_own_rules(schema)
    for part, subject in (
        (schema.get("items"), "each"),
        (schema.get("propertyNames"), "each key"),
        (map_values_of(schema), "each value"),
    ):
        if isinstance(part, dict):
            rules += [f"{subject}: {rule}" for rule in rules_in_words(part, schemas)]
    if "default" in schema:
        rules.append(f"default {_code(schema['default'])}")
    return tuple(dict.fromkeys(rules))


def _describe_own_rules(schema: Schema) -> list[str]:
    rules = [
        _range(schema, "minLength", "maxLength", "character"),
        _range(schema, "minItems", "maxItems", "item"),
        _range(schema, "minimum", "maximum"),
    ]
    if "exclusiveMinimum" in schema:
        rules.append(f"more than {_number(schema['exclusiveMinimum'])}")
    if "exclusiveMaximum" in schema:
        rules.append(f"less than {_number(schema['exclusiveMaximum'])}")
    if "pattern" in schema:
        rules.append(f"matches `{schema['pattern']}`")
    rules += [f"each key: matches `{pattern}`" for pattern in schema.get("patternProperties", {})]
    if "enum" in schema:
        rules.append(f"one of {', '.join(map(_code, schema['enum']))}")
    return [rule for rule in rules if rule]


def _range(schema: Schema, low_key: str, high_key: str, noun: str = "") -> str:
    low, high = schema.get(low_key), schema.get(high_key)
    if low is not None and low == high:
        return f"exactly {_amount(low, noun)}"
    if low is not None and high is not None:
        return f"{_number(low)} to {_amount(high, noun)}"
    if low is not None:
        return f"at least {_amount(low, noun)}"
    return f"at most {_amount(high, noun)}" if high is not None else ""


def _amount(value: float, noun: str) -> str:
    ending = "" if value == 1 else "s"
    return f"{_number(value)} {noun}{ending}" if noun else _number(value)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _code(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


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
