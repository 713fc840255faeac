"""The description of the real hub, held against the interface document."""

import re
from typing import Any

from fastapi import FastAPI

from hublet.description import describe, to_json, to_markdown
from hublet.gaps import GAPS
from hublet.tokens.records import Scope

# Interface 1, in its order.
TAGS = [
    "auth",
    "models",
    "kernels",
    "datasets",
    "sql-console",
    "discussions",
    "spaces",
    "repo-search",
    "repos",
    "users",
    "orgs",
    "service-accounts",
    "jobs",
    "resource-groups",
    "papers",
    "collections",
    "buckets",
    "containers",
    "notifications",
    "inference-providers",
    "inference-endpoints",
    "mcp",
    "oauth",
    "docs",
    "webhooks",
    "scim",
    "agents",
]


def operations(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }


def test_versions_are_those_of_the_interface(described: dict[str, Any]) -> None:
    assert described["openapi"] == "3.1.0"
    assert described["info"]["version"] == "0.0.1"


def test_tags_come_in_the_interfaces_order(described: dict[str, Any]) -> None:
    assert [tag["name"] for tag in described["tags"]][: len(TAGS)] == TAGS


def test_the_description_is_the_same_bytes_each_time(
    app: FastAPI, described: dict[str, Any]
) -> None:
    assert to_json(describe(app, base_url="http://hub.test")) == to_json(described)


def test_every_object_is_closed(described: dict[str, Any]) -> None:
    open_ones = [
        name
        for name, schema in described["components"]["schemas"].items()
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False
    ]
    assert open_ones == []


def test_revoke_needs_no_token_and_shows_its_limits(described: dict[str, Any]) -> None:
    revoke = operations(described)["POST /api/credentials/revoke"]

    assert revoke["security"] == []
    assert "202" in revoke["responses"]
    assert "200" not in revoke["responses"]
    assert described["components"]["schemas"]["RevokeCredentials"] == {
        "type": "object",
        "properties": {
            "credentials": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 200},
                "minItems": 1,
                "maxItems": 1000,
            }
        },
        "required": ["credentials"],
        "additionalProperties": False,
    }


def test_everything_else_that_needs_a_token_says_so(described: dict[str, Any]) -> None:
    for name, operation in operations(described).items():
        needs_one = bool(operation["security"])
        assert ("401" in operation["responses"]) is needs_one, name


def test_scopes_in_the_description_are_scopes_of_the_interface(described: dict[str, Any]) -> None:
    for name, operation in operations(described).items():
        for scheme in operation["security"]:
            assert set(scheme.get("bearer", [])) <= set(Scope), name


def test_every_operation_has_a_sentence_and_an_error_form(described: dict[str, Any]) -> None:
    for name, operation in operations(described).items():
        assert operation["description"].strip().endswith((".", ":")), name
        assert {"400", "429", "503"} <= operation["responses"].keys(), name


def test_the_markdown_holds_every_operation(described: dict[str, Any]) -> None:
    text = to_markdown(described)

    missing = [name for name in operations(described) if name.replace(" ", " `", 1) not in text]
    assert [name for name in missing if name.split()[1] not in text] == []


def test_what_the_hub_has_is_no_gap_any_more(described: dict[str, Any]) -> None:
    def shape(path: str) -> str:
        return re.sub(r"{[^}]*}", "{}", path)

    built = {tuple(map(shape, name.split())) for name in operations(described)}
    gaps = {(gap.method, shape(gap.path)) for gap in GAPS}

    assert built & gaps == set()
