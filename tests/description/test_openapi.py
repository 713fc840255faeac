"""What the description says about routes."""

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Security
from jsonschema import Draft202012Validator

import hublet
from hublet.core.schema import Schema
from hublet.description import describe, to_json
from hublet.description.operations import scope_sentence
from small_hub import BASE_URL, identify, small_hub

# As interface 1 lists them.
INTERFACE_TAGS = (
    "auth, models, kernels, datasets, sql-console, discussions, spaces, repo-search, repos, users, "
    "orgs, service-accounts, jobs, resource-groups, papers, collections, buckets, containers, "
    "notifications, inference-providers, inference-endpoints, mcp, oauth, docs, webhooks, scim, "
    "agents"
)

SHARED = "#/components/responses/Error"
REQUEST_ID = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}


class OtherError(Schema):
    error_description: str


def described(*routers: APIRouter) -> dict[str, Any]:
    return describe(small_hub(*routers), base_url=BASE_URL)


def operation(path: str, method: str) -> dict[str, Any]:
    found: dict[str, Any] = described()["paths"][path][method]
    return found


def test_the_head_is_what_the_interface_asks_for() -> None:
    description = described()

    assert description["openapi"] == "3.1.0"
    assert description["info"]["title"] == "Hublet"
    assert description["info"]["version"] == hublet.__version__ == "0.0.1"
    assert description["servers"] == [{"url": "http://hub.test"}]
    assert description["security"] == [{"bearer": []}]
    assert description["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_the_tags_are_those_of_the_interface_and_our_own_two() -> None:
    tags = described()["tags"]

    names = ", ".join(tag["name"] for tag in tags)
    assert names == f"{INTERFACE_TAGS}, administration, operations"
    assert all(tag["description"].endswith(".") for tag in tags)


def test_an_operation_with_a_body_is_described_whole() -> None:
    assert operation("/api/settings/webhooks", "post") == {
        "tags": ["webhooks"],
        "summary": "Create webhook",
        "description": "Create a webhook. Needs the scope `webhooks`.",
        "operationId": "create_webhook",
        "security": [{"bearer": ["webhooks"]}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/CreateWebhook"}}
            },
        },
        "responses": {
            "200": {
                "description": "OK",
                "headers": REQUEST_ID,
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/WebhookEnvelope"}}
                },
            },
            "400": {"$ref": f"{SHARED}400"},
            "401": {"$ref": f"{SHARED}401"},
            "403": {"$ref": f"{SHARED}403"},
            "409": {
                "description": "There are too many webhooks.",
                "headers": {
                    **REQUEST_ID,
                    "X-Error-Code": {"$ref": "#/components/headers/X-Error-Code"},
                    "X-Error-Message": {"$ref": "#/components/headers/X-Error-Message"},
                },
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
            "413": {"$ref": f"{SHARED}413"},
            "429": {"$ref": f"{SHARED}429"},
            "503": {"$ref": f"{SHARED}503"},
        },
    }


@pytest.mark.parametrize(
    ("path", "method", "statuses"),
    [
        pytest.param(
            "/api/settings/webhooks",
            "get",
            ["200", "400", "401", "403", "429", "503"],
            id="a request can always be wrong, refused or too early",
        ),
        pytest.param(
            "/api/settings/webhooks/{webhook_id}",
            "get",
            ["200", "400", "401", "403", "404", "429", "503"],
            id="a path parameter may name what is not there",
        ),
        pytest.param(
            "/api/models/{repo_id}/tree/{rev}",
            "get",
            ["200", "400", "404", "429", "503"],
            id="without a token there is no 401 and no 403",
        ),
        pytest.param(
            "/oauth/device",
            "post",
            ["202", "400", "413", "429", "503"],
            id="a form is a body and may be too large",
        ),
    ],
)
def test_errors_follow_from_what_an_operation_takes(
    path: str, method: str, statuses: list[str]
) -> None:
    assert list(operation(path, method)["responses"]) == statuses


def test_a_route_without_a_token_says_so() -> None:
    assert operation("/oauth/device", "post")["security"] == []
    assert operation("/oauth/device", "post")["description"] == "Start a login on another device."


def test_a_form_body_stays_a_form() -> None:
    content = operation("/oauth/device", "post")["requestBody"]["content"]

    assert list(content) == ["application/x-www-form-urlencoded"]


def test_a_parameter_that_matches_slashes_is_marked() -> None:
    assert operation("/api/models/{repo_id}/tree/{rev}", "get")["parameters"] == [
        {
            "name": "repo_id",
            "in": "path",
            "required": True,
            "schema": {"type": "string"},
            "x-may-contain-slashes": True,
        },
        {"name": "rev", "in": "path", "required": True, "schema": {"type": "string"}},
    ]


def test_made_up_titles_are_gone_and_a_field_called_title_stays() -> None:
    schemas = described()["components"]["schemas"]

    assert schemas["Webhook"]["properties"]["title"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }
    assert b'"title": "' not in to_json(described()).replace(b'"title": "Hublet"', b"")


def test_the_framework_s_own_error_form_is_gone() -> None:
    description = described()

    assert sorted(description["components"]["schemas"]) == [
        "Body_start_device_login_oauth_device_post",
        "CreateWebhook",
        "Error",
        "Watched",
        "Webhook",
        "WebhookEnvelope",
    ]
    assert b'"422"' not in to_json(description)


def test_the_limit_error_tells_when_to_come_back() -> None:
    components = described()["components"]

    assert list(components["responses"]["Error429"]["headers"]) == [
        "X-Request-Id",
        "X-Error-Code",
        "X-Error-Message",
        "Retry-After",
        "RateLimit",
        "RateLimit-Policy",
    ]
    assert components["schemas"]["Error"]["required"] == ["error"]
    assert components["schemas"]["Error"]["additionalProperties"] is False


def test_a_route_can_replace_a_shared_error() -> None:
    router = APIRouter(tags=["oauth"])

    @router.post("/oauth/token", responses={400: {"model": OtherError, "description": "RFC 6749."}})
    async def issue_token(grant_type: str) -> dict[str, str]:
        return {"grant": grant_type}

    responses = described(router)["paths"]["/oauth/token"]["post"]["responses"]
    assert responses["400"] == {
        "description": "RFC 6749.",
        "headers": REQUEST_ID,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/OtherError"}}},
    }


def test_a_route_can_say_that_a_token_is_optional() -> None:
    router = APIRouter(tags=["users"])

    @router.get("/api/users", openapi_extra={"security": [{}]})
    async def list_users(_caller: Annotated[str, Security(identify)]) -> list[str]:
        return []

    found = described(router)["paths"]["/api/users"]["get"]
    assert found["security"] == [{"bearer": []}, {}]


@pytest.mark.parametrize(
    ("scopes", "sentence"),
    [
        pytest.param([], "", id="no scope needs no sentence"),
        pytest.param(["jobs"], "Needs the scope `jobs`.", id="one"),
        pytest.param(["a", "b"], "Needs the scopes `a` and `b`.", id="two"),
        pytest.param(["a", "b", "c"], "Needs the scopes `a`, `b` and `c`.", id="three"),
    ],
)
def test_scopes_become_a_sentence(scopes: list[str], sentence: str) -> None:
    assert scope_sentence(scopes) == sentence


def test_two_routes_of_one_name_are_refused() -> None:
    router = APIRouter(tags=["users"])

    @router.get("/api/a")
    @router.get("/api/b")
    async def look() -> str:
        return ""

    with pytest.raises(
        ValueError, match="Two operations are called look: GET /api/b and GET /api/a"
    ):
        described(router)


@pytest.mark.parametrize("tags", [[], ["users", "elsewhere"]])
def test_a_route_needs_a_tag_that_is_listed(tags: list[str]) -> None:
    router = APIRouter(tags=[*tags])

    @router.get("/api/a")
    async def look() -> str:
        return ""

    with pytest.raises(
        ValueError, match=r"The operation look needs a tag from hublet\.description"
    ):
        described(router)


def test_hidden_routes_are_not_described() -> None:
    router = APIRouter(tags=["users"])

    @router.get("/api/a")
    @router.get("/api/b", include_in_schema=False)
    async def look() -> str:
        return ""

    assert list(described(router)["paths"]) == ["/api/a"]


def test_the_same_routes_give_the_same_bytes() -> None:
    assert to_json(described()) == to_json(described())


def test_every_schema_is_valid_json_schema() -> None:
    for schema in described()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
