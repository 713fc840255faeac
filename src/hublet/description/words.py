"""Says in words what a JSON schema allows."""

import json
from typing import Any

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
    rules += _own_rules(schema)
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


def _own_rules(schema: Schema) -> list[str]:
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
