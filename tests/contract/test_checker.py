"""The judge of every answer must itself be right."""

import json
from typing import Any

import pytest

from contract.checker import Contract
from hublet.description import describe
from small_hub import BASE_URL, small_hub

WEBHOOK = {
    "id": "a" * 24,
    "url": "https://example.com/hook",
    "title": None,
    "disabled": False,
    "watched": [{"type": "model", "name": "ada/engine"}],
}
HEADERS = {"X-Request-Id": "r1", "Content-Type": "application/json"}
LIMITED = {"Retry-After": "5", "RateLimit": '"api";r=0;t=5', "RateLimit-Policy": '"api";q=1;w=5'}


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract(describe(small_hub(), base_url=BASE_URL))


def answer(shown: object = (WEBHOOK,), **changes: Any) -> dict[str, Any]:
    """A listing of webhooks that is as described; name only what the test is about."""
    given: dict[str, Any] = {
        "method": "GET",
        "path": "/api/settings/webhooks",
        "status": 200,
        "headers": HEADERS,
        "body": json.dumps(shown).encode(),
    }
    return given | changes


def error(status: int, **changes: Any) -> dict[str, Any]:
    return answer({"error": "It went wrong."}, status=status, **changes)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(answer(), id="an answer as described"),
        pytest.param(answer([]), id="an empty list"),
        pytest.param(
            answer([WEBHOOK | {"lastTriggerAt": "2026-01-31T12:00:00.123Z"}]),
            id="an optional field",
        ),
        pytest.param(answer([WEBHOOK | {"disabled": "suspended-after-failure"}]), id="a variant"),
        pytest.param(
            answer(headers={"x-request-id": "r1", "content-type": "Application/JSON; charset=x"}),
            id="names of headers and types in any case",
        ),
        pytest.param(error(400), id="a shared error"),
        pytest.param(error(409, method="POST"), id="an error of the route's own"),
        pytest.param(error(429, headers=HEADERS | LIMITED), id="a limit with its headers"),
        pytest.param(answer(method="HEAD", body=b""), id="HEAD has no body"),
        pytest.param(error(404, path="/api/nothing"), id="404 where nothing is described"),
        pytest.param(error(501, path="/api/collections"), id="501 of a gap"),
        pytest.param(error(501, method="PATCH"), id="501 of a gap beside an operation"),
        pytest.param(error(405, method="PATCH"), id="405"),
        pytest.param(error(405, method="HEAD", body=b""), id="405 for HEAD"),
        pytest.param(
            answer(method="OPTIONS", status=204, headers={}, body=b""), id="a preflight request"
        ),
        pytest.param(
            answer(path="/", headers={"Content-Type": "text/html"}, body=b"<p>"), id="a page"
        ),
        pytest.param(
            answer(path="/x", status=403, headers={"Content-Type": "text/html"}, body=b"<p>"),
            id="a page that tells an error",
        ),
        pytest.param(
            answer(path="/x", status=303, headers={}, body=b""), id="the way from a form to a page"
        ),
        pytest.param(
            answer(["a"], path="/api/models/ada/engine/tree/main"), id="a parameter with slashes"
        ),
    ],
)
def test_what_is_promised_passes(contract: Contract, given: dict[str, Any]) -> None:
    contract.check(**given)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        pytest.param(
            answer([WEBHOOK | {"secret": "x"}]),
            r"\$\[0\]: Additional properties are not allowed \('secret' was unexpected\)",
            id="an extra field",
        ),
        pytest.param(
            answer(path="/api/x", headers={"Content-Type": "text/html"}, body=b"<p>"),
            "no such operation is described",
            id="a page in the API",
        ),
        pytest.param(
            answer([{name: WEBHOOK[name] for name in WEBHOOK if name != "url"}]),
            r"\$\[0\]: 'url' is a required property",
            id="a missing field",
        ),
        pytest.param(
            answer([WEBHOOK | {"watched": "all"}]),
            r"\$\[0\]\.watched: 'all' is not of type 'array'",
            id="a wrong type",
        ),
        pytest.param(
            answer([WEBHOOK | {"lastTriggerAt": "2026-13-31T12:00:00Z"}]),
            "is not a 'date-time'",
            id="a month that does not exist",
        ),
        pytest.param(
            answer([WEBHOOK | {"lastTriggerAt": "2026-12-31Z"}]),
            "is not a 'date-time'",
            id="a time without an hour",
        ),
        pytest.param(
            answer([WEBHOOK | {"url": "example.com/hook"}]), "is not a 'uri'", id="a bare host"
        ),
        pytest.param(
            error(402),
            "answered 402, but GET /api/settings/webhooks promises only 200, 400, 401",
            id="a status that is not described",
        ),
        pytest.param(
            answer(headers=HEADERS | {"Content-Type": "text/plain"}),
            "answered 200 as text/plain, but application/json is described",
            id="a wrong content type",
        ),
        pytest.param(
            answer(headers={"X-Request-Id": "r1"}), "answered 200 as nothing", id="no content type"
        ),
        pytest.param(answer(body=b"[{"), "not JSON", id="broken JSON"),
        pytest.param(
            answer(headers={"Content-Type": "application/json"}),
            "without the header X-Request-Id",
            id="no request id",
        ),
        pytest.param(
            answer(method="HEAD", headers={}, body=b""), "X-Request-Id", id="HEAD has headers too"
        ),
        pytest.param(
            error(429), "without the header Retry-After", id="a limit without its headers"
        ),
        pytest.param(
            answer({"detail": "no"}, status=400), "'error' is a required", id="another error form"
        ),
        pytest.param(
            answer({"detail": "no"}, status=404, path="/api/nothing"),
            "'error' is a required",
            id="another error form where nothing is described",
        ),
        pytest.param(
            answer(path="/api/nothing"), "no such operation is described", id="an unknown operation"
        ),
        pytest.param(
            answer(method="PATCH"), "no such operation is described", id="an unknown method"
        ),
    ],
)
def test_what_is_not_promised_fails(
    contract: Contract, given: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        contract.check(**given)


def test_a_body_fails_where_none_is_described() -> None:
    description = describe(small_hub(), base_url=BASE_URL)
    description["paths"]["/api/settings/webhooks"]["get"]["responses"]["304"] = {}

    with pytest.raises(AssertionError, match="with a body, but none is described"):
        Contract(description).check(**answer(status=304))


def test_literal_segments_win_over_parameters() -> None:
    text: dict[str, Any] = {"200": {"content": {"text/plain": {}}}}
    slashes = [{"name": "repo", "in": "path", "x-may-contain-slashes": True}]
    paths = {
        "/a/{repo}": {"get": {"responses": {}, "parameters": slashes}},
        "/a/{name}/{id}": {"get": {"responses": {}}},
        "/a/{name}/tree": {"get": {"responses": text}},
        "/a/{repo}/tree/{rev}": {"get": {"responses": text, "parameters": slashes}},
    }
    contract = Contract({"paths": paths, "components": {}})

    for path in ("/a/ada/tree", "/a/ada/engine/tree/main"):
        contract.check(
            method="GET", path=path, status=200, headers={"Content-Type": "text/plain"}, body=b""
        )
