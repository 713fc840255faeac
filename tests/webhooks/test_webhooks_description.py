"""Webhooks and their jobs in the description, held against the interface."""

from typing import Any

import pytest

from hublet.jobs.records import Flavor

ENVIRONMENT = {
    "type": "object",
    "patternProperties": {"^[a-zA-Z][_a-zA-Z0-9]+$": {"type": "string", "maxLength": 65_536}},
    "additionalProperties": False,
}


@pytest.fixture
def schemas(described: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = described["components"]["schemas"]
    return found


def variants(schema: dict[str, Any]) -> list[str]:
    return [part["$ref"].rpartition("/")[2] for part in schema["anyOf"]]


def test_a_webhook_has_the_fields_of_the_interface(schemas: dict[str, Any]) -> None:
    webhook = schemas["Webhook"]

    required = ["id", "disabled", "watched", "hasSecret", "domains"]
    optional = ["url", "job", "jobSourceId", "lastTriggerAt"]
    assert sorted(webhook["properties"]) == sorted([*required, *optional])
    assert sorted(webhook["required"]) == sorted(required)
    assert webhook["properties"]["disabled"] == {
        "anyOf": [{"type": "boolean"}, {"type": "string", "const": "suspended-after-failure"}]
    }
    assert variants(webhook["properties"]["job"]) == ["SpaceJob", "ImageJob"]


def test_a_shown_job_has_two_variants_and_no_other_fields(schemas: dict[str, Any]) -> None:
    required = ["environment", "flavor", "timeoutSeconds"]
    optional = ["arguments", "command", "labels", "secrets", "spaceId", "dockerImage"]
    for name, own in (("SpaceJob", "spaceId"), ("ImageJob", "dockerImage")):
        job = schemas[name]
        assert sorted(job["properties"]) == sorted([*required, *optional])
        assert sorted(job["required"]) == sorted([*required, own])
        assert job["properties"][own] == {"type": "string", "minLength": 1, "maxLength": 512}
        assert job["properties"]["environment"] == ENVIRONMENT
        assert job["additionalProperties"] is False


def test_a_requested_job_is_a_union_of_two_variants(schemas: dict[str, Any]) -> None:
    for name in ("CreateWebhook", "UpdateWebhook"):
        wanted = schemas[name]["properties"]
        assert variants(wanted["job"]) == ["SpaceJobRequest", "ImageJobRequest"]
        assert wanted["url"] == {
            "type": "string",
            "format": "uri",
            "minLength": 1,
            "maxLength": 2048,
        }
        assert wanted["secret"] == {
            "type": "string",
            "maxLength": 256,
            "pattern": r"^[\x20-\x7E]*$",
        }
    for name, own in (("SpaceJobRequest", "spaceId"), ("ImageJobRequest", "dockerImage")):
        assert sorted(schemas[name]["required"]) == sorted(["flavor", own])
        assert schemas[name]["properties"]["environment"] == ENVIRONMENT | {"default": {}}
    assert schemas["Flavor"]["enum"] == list(Flavor)


def test_an_organizations_operations_are_those_of_a_user(described: dict[str, Any]) -> None:
    paths = described["paths"]
    own, theirs = "/api/settings/webhooks", "/api/organizations/{name}/settings/webhooks"

    assert paths[own].keys() == paths[theirs].keys() == {"get", "post"}
    for rest in ("/{webhookId}", "/{webhookId}/enable", "/{webhookId}/disable"):
        assert paths[own + rest].keys() == paths[theirs + rest].keys()
    named = paths[f"{theirs}/{{webhookId}}"]["get"]["parameters"]
    assert sorted(each["name"] for each in named) == ["name", "webhookId"]
    assert [each["bearer"] for each in paths[own]["get"]["security"]] == [["webhooks"]]
    assert [each["bearer"] for each in paths[theirs]["get"]["security"]] == [["webhooks"]]
