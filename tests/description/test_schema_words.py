"""How a schema reads in words."""

from typing import Any

import pytest

from hublet.description.shapes import rules_in_words, type_in_words

SCHEMAS: dict[str, dict[str, Any]] = {
    "Watched": {"type": "object", "properties": {"name": {"type": "string"}}},
    "Kind": {"type": "string", "enum": ["model", "dataset"]},
}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        pytest.param({"type": "string"}, "string", id="a plain type"),
        pytest.param(
            {"type": "string", "format": "date-time"}, "string (date-time)", id="a format"
        ),
        pytest.param({}, "any value", id="no type is any value"),
        pytest.param({"enum": ["a"]}, "string", id="an enum without a type is text"),
        pytest.param({"const": "repo"}, '"repo"', id="a constant is its own type"),
        pytest.param({"type": ["string", "null"]}, "string or null", id="a list of types"),
        pytest.param(
            {"anyOf": [{"type": "boolean"}, {"const": "off"}]}, 'boolean or "off"', id="a union"
        ),
        pytest.param(
            {"oneOf": [{"$ref": "#/c/s/Watched"}, {"type": "object"}]},
            "object",
            id="the same word is not said twice",
        ),
        pytest.param(
            {"type": "array", "items": {"$ref": "#/components/schemas/Kind"}},
            "array of string",
            id="an array says what is in it",
        ),
        pytest.param({"type": "array"}, "array of any value", id="an array of anything"),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "number"}},
            "object string->number",
            id="a map says what its values are",
        ),
        pytest.param(
            {"type": "object", "patternProperties": {"^a": {"type": "null"}}},
            "object string->null",
            id="a map with a pattern for its keys",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": False}, "object", id="a closed object"
        ),
    ],
)
def test_a_type_in_words(schema: dict[str, Any], words: str) -> None:
    assert type_in_words(schema, SCHEMAS) == words


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        pytest.param({"type": "string"}, (), id="no rules"),
        pytest.param({"minLength": 1}, ("at least 1 character",), id="one is singular"),
        pytest.param({"maxLength": 24}, ("at most 24 characters",), id="only an upper limit"),
        pytest.param({"minLength": 1, "maxLength": 9}, ("1 to 9 characters",), id="both limits"),
        pytest.param({"minLength": 4, "maxLength": 4}, ("exactly 4 characters",), id="the same"),
        pytest.param({"minItems": 0, "maxItems": 20}, ("0 to 20 items",), id="zero is a limit"),
        pytest.param({"minimum": 1, "maximum": 65535}, ("1 to 65535",), id="a number has no unit"),
        pytest.param({"exclusiveMinimum": 0.0}, ("more than 0",), id="a whole number looks whole"),
        pytest.param({"exclusiveMaximum": 1.5}, ("less than 1.5",), id="a fraction stays one"),
        pytest.param({"pattern": "^a|b$"}, ("matches `^a|b$`",), id="a pattern"),
        pytest.param({"enum": ["a", ""]}, ('one of `a`, `""`',), id="an empty text is visible"),
        pytest.param({"default": False}, ("default `false`",), id="a default"),
        pytest.param(
            {"$ref": "#/components/schemas/Kind"},
            ("one of `model`, `dataset`",),
            id="rules of a named schema",
        ),
        pytest.param(
            {"minItems": 1, "items": {"maxLength": 5}},
            ("at least 1 item", "each: at most 5 characters"),
            id="rules of the items",
        ),
        pytest.param(
            {"propertyNames": {"pattern": "^k"}, "additionalProperties": {"maxLength": 1}},
            ("each key: matches `^k`", "each value: at most 1 character"),
            id="rules of keys and values",
        ),
        pytest.param(
            {"patternProperties": {"^k": {"maxLength": 2}}},
            ("each key: matches `^k`", "each value: at most 2 characters"),
            id="rules of keys that are a pattern",
        ),
        pytest.param(
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
            ("at least 1", "default `null`"),
            id="rules of a value that may be null",
        ),
    ],
)
def test_rules_in_words(schema: dict[str, Any], rules: tuple[str, ...]) -> None:
    assert rules_in_words(schema, SCHEMAS) == rules
