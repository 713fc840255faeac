"""Errors: a page for people who look with a browser, JSON for programs."""

import re

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from login.login_pages import a_person, log_in
from people import Headers, a_user
from repositories import a_repo

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_person_gets_a_page_and_a_program_gets_json(client: httpx2.AsyncClient) -> None:
    page = await client.get("/nobody/nothing/resolve/main/x", headers=BROWSER)
    plain = await client.get("/nobody/nothing/resolve/main/x")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>Nothing here</h1>" in page.text
    assert plain.headers["content-type"] == "application/json"
    assert plain.json() == {"error": "Repository not found"}
    assert "Accept" in page.headers["vary"]
    assert "Accept" in plain.headers["vary"]


@pytest.mark.parametrize(
    "path", ["/api/models/nobody/nothing", "/api/organizations/x/scim/v2/Users"]
)
async def test_an_api_answers_browsers_as_it_answers_everybody(
    client: httpx2.AsyncClient, path: str
) -> None:
    response = await client.get(path, headers=BROWSER)

    assert "json" in response.headers["content-type"]


async def test_an_address_without_a_route_is_a_page_too(client: httpx2.AsyncClient) -> None:
    response = await client.get("/a/b/c/d/e/f", headers=BROWSER)

    assert response.status_code == 404
    assert response.headers["content-type"] == "text/html; charset=utf-8"


async def test_private_and_absent_look_the_same(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    await a_person(database, "grace")

    for signed_in in (False, True):
        if signed_in:
            await log_in(client, "grace")
        private = await client.get("/ada/secret/resolve/main/README.md", headers=BROWSER)
        absent = await client.get("/ada/absent/resolve/main/README.md", headers=BROWSER)
        assert (private.status_code, absent.status_code) == (404, 404)
        # The form that signs out has another token each time.
        assert _without_tokens(private).replace("secret", "absent") == _without_tokens(absent)


def _without_tokens(page: httpx2.Response) -> str:
    return re.sub(r'name="form_token" value="[0-9a-f]+"', "", page.text)


async def test_who_is_not_signed_in_is_offered_to_and_comes_back(
    client: httpx2.AsyncClient,
) -> None:
    page = await client.get("/ada/secret/resolve/main/a%20b", headers=BROWSER)

    assert 'href="/login?next=/ada/secret/resolve/main/a%2520b"' in page.text


async def test_who_is_signed_in_sees_the_own_name_on_the_error(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "grace")
    await log_in(client, "grace")

    page = await client.get("/ada/secret/resolve/main/x", headers=BROWSER)

    assert "Menu of grace" in page.text
    assert ">Sign in<" not in page.text


async def test_a_failure_of_the_hub_is_a_page_with_the_request_id(
    app: FastAPI, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_user(database, "ada")

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("hublet.repos.browse.download_routes.get_revision", fail)
    transport = httpx2.ASGITransport(app=with_edge(app), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        page = await client.get("/ada/engine/resolve/main/x", headers=BROWSER)

    assert page.status_code == 500
    assert page.headers["x-request-id"] in page.text
    assert "broken on purpose" not in page.text


async def test_a_form_that_is_too_large_is_answered_with_a_page(
    client: httpx2.AsyncClient,
) -> None:
    content = b"x" * (2**20 + 1)
    page = await client.post("/login", content=content, headers=BROWSER)
    plain = await client.post("/login", content=content)

    assert (page.status_code, plain.status_code) == (413, 413)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "The body must have at most 1048576 bytes." in page.text
    assert plain.json() == {"error": "The body must have at most 1048576 bytes."}
