"""Examples that a caller can copy."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hublet.description import describe
from hublet.description.examples import curl_of, example_of
from small_hub import BASE_URL, small_hub


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        pytest.param({"type": "string", "examples": ["hf_x"]}, "hf_x", id="its own example first"),
        pytest.param({"const": "repo"}, "repo", id="a constant"),
        pytest.param({"enum": ["a", "b"]}, "a", id="the first choice"),
        pytest.param({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, True, id="not null"),
        pytest.param({"type": "integer", "minimum": 5}, 5, id="the least number"),
        pytest.param({"type": "integer", "exclusiveMinimum": 0}, 1, id="above an open limit"),
        pytest.param({"type": "string", "pattern": "^[0-9a-f]{24}$"}, "0123456789abcdef01234567"),
        pytest.param({"type": "string", "maxLength": 3}, "ada", id="short enough"),
        pytest.param({"type": "string", "format": "uri"}, "https://example.com/hook", id="a URI"),
        pytest.param({"type": "array", "items": {"type": "string"}}, ["text"], id="one item"),
        pytest.param(
            {"type": "object", "required": ["a"], "properties": {"a": {}, "b": {}}},
            {"a": "a"},
            id="only what is required",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {}}},
            {"a": True},
            id="the first field where none is required",
        ),
        pytest.param({"type": "object", "additionalProperties": {}}, {}, id="an empty map"),
    ],
)
def test_an_example_of_a_schema(schema: dict[str, Any], example: object) -> None:
    assert example_of(schema, {}) == example


def test_a_schema_that_needs_itself_has_an_end() -> None:
    tree = {"type": "object", "required": ["left"], "properties": {"left": {"$ref": "#/c/s/Tree"}}}

    assert str(example_of(tree, {"Tree": tree})).count("left") == 7


def test_examples_are_valid_themselves() -> None:
    components = describe(small_hub(), base_url=BASE_URL)["components"]

    for schema in components["schemas"].values():
        example = example_of(schema, components["schemas"])
        Draft202012Validator(schema | {"components": components}).validate(example)


@pytest.mark.parametrize(
    ("method", "operation", "command"),
    [
        pytest.param("GET", {}, 'curl "http://hub.test/a/$WEBHOOK_ID"', id="a plain call"),
        pytest.param(
            "GET",
            {
                "parameters": [
                    {"name": "q", "in": "query", "required": True, "schema": {"const": "a b"}},
                    {"name": "p", "in": "query", "schema": {}},
                ]
            },
            'curl "http://hub.test/a/$WEBHOOK_ID?q=a+b"',
            id="a required parameter is filled in",
        ),
        pytest.param(
            "POST",
            {
                "requestBody": {
                    "content": {"application/json": {"schema": {"const": {"a": "it's"}}}}
                }
            },
            'curl -X POST "http://hub.test/a/$WEBHOOK_ID" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            """  -d '{"a": "it'"'"'s"}'""",
            id="a body is quoted for the shell",
        ),
        pytest.param(
            "POST",
            {
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {"schema": {"const": {"a": "1 2"}}}
                    }
                }
            },
            "curl -X POST \"http://hub.test/a/$WEBHOOK_ID\" --data-urlencode 'a=1 2'",
            id="a form",
        ),
        pytest.param(
            "PUT",
            {"requestBody": {"content": {"application/octet-stream": {}}}},
            'curl -X PUT "http://hub.test/a/$WEBHOOK_ID" \\\n'
            '  -H "Content-Type: application/octet-stream" \\\n'
            "  --data-binary @FILE",
            id="anything else comes from a file",
        ),
    ],
)
def test_a_curl_command(method: str, operation: dict[str, Any], command: str) -> None:
    written = curl_of(
        method=method,
        url="http://hub.test/a/{webhookId}",
        operation=operation,
        schemas={},
        token=False,
    )

    assert written == command
