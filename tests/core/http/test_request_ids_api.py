"""The id of a request: the one that its client gave it, or one of our own."""

import re
from typing import NoReturn

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from people import Headers

WHOAMI = "/api/whoami-v2"


# A fast route, a route of the framework, an error of each, a page, a file.
@pytest.mark.parametrize(
    "path", [WHOAMI, "/healthz", "/api/nothing", "/api/models/no/such", "/", "/static/icon.svg"]
)
@pytest.mark.parametrize("name", ["X-Request-Id", "X-Amzn-Trace-Id"])
async def test_the_id_that_a_client_gave_its_request_is_echoed(
    client: httpx2.AsyncClient, ada: Headers, path: str, name: str
) -> None:
    for given in ("3f2a9c1e-0000-4000-8000-1234567890ab", "Root=1-67891233-abcdef;Self=1"):
        for headers in (ada, {}):
            response = await client.get(path, headers={**headers, name: given})
            assert response.headers["x-request-id"] == given


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("", id="empty"),
        pytest.param("a" * 129, id="too long"),
        pytest.param("two words", id="a blank"),
        pytest.param('a"b', id="a quote"),
        pytest.param("a\x7fb", id="a control character"),
        pytest.param("caf\xe9", id="not ASCII"),
        pytest.param("hf_" + "a" * 34, id="a token"),
    ],
)
async def test_an_id_that_may_not_stand_in_a_log_is_not_used(
    client: httpx2.AsyncClient, given: str
) -> None:
    response = await client.get("/healthz", headers=[(b"x-request-id", given.encode("latin-1"))])

    assert re.fullmatch("[0-9a-f]{32}", response.headers["x-request-id"])


async def test_the_id_of_a_client_stands_in_the_sentence_of_an_unexpected_error(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> NoReturn:
        raise RuntimeError

    monkeypatch.setattr(app.state.database, "check", broken)
    transport = httpx2.ASGITransport(app=with_edge(app), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        response = await client.get("/readyz", headers={"X-Amzn-Trace-Id": "my-own"})

    assert response.headers["x-request-id"] == "my-own"
    assert "the request id my-own." in response.json()["error"]
