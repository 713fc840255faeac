"""Trusted publishers of a repository are listed, added, reset and deleted on its pages."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.database import Database
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, sign_in
from repositories import a_repo

API = "/api/models/ada/engine/trusted-publishers"
PAGE = "/ada/engine/settings/trusted-publishers"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser, and her repository."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    ada = await sign_in(database, "ada")
    await a_repo(client, ada, "ada/engine")
    return ada


async def send(
    client: httpx2.AsyncClient, action: str = PAGE, page: str = PAGE, **fields: Any
) -> httpx2.Response:
    token = form_token_of(await client.get(page), action)
    return await client.post(action, data={"form_token": token} | fields)


async def test_a_workflow_of_github_is_trusted_by_a_form(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await send(client, provider="github", repository="acme/engine", workflow="a.yml")

    assert response.headers["location"] == PAGE
    [publisher] = (await client.get(API, headers=ada)).json()
    assert publisher["issuer"] == "https://token.actions.githubusercontent.com"
    assert publisher["claims"] == {"repository": "acme/engine", "workflow": "a.yml"}
    page = (await client.get(PAGE)).text
    assert "acme/engine" in page
    assert "never used" in page
    assert "export HF_OIDC_RESOURCE=ada/engine" in page


async def test_a_workflow_of_gitlab_is_trusted_by_its_form(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    page = f"{PAGE}?provider=gitlab"
    await send(client, page=page, provider="gitlab", project="acme/engine", environment="prod")

    [publisher] = (await client.get(API, headers=ada)).json()
    assert publisher["issuer"] == "https://gitlab.com"
    assert publisher["claims"] == {"project": "acme/engine", "environment": "prod"}


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"provider": "github", "repository": ""}, "claims must name"),
        ({"provider": "github", "repository": "acme"}, "claims.repository must look like"),
        ({"provider": "custom", "claims": "sub"}, "claims must be lines such as"),
        ({"provider": "custom", "claims": "a=1\na=2"}, "claims must be lines such as"),
        ({"provider": "custom", "issuer": "https://x.example", "claims": "a=1"}, "issuer must be"),
        ({"provider": "travis"}, "provider must be"),
    ],
    ids=str,
)
async def test_a_form_that_breaks_a_rule_is_shown_again(
    client: httpx2.AsyncClient, fields: dict[str, str], sentence: str
) -> None:
    response = await send(client, **fields)

    assert response.status_code == 422
    assert any(sentence in notice for notice in notices_in(response))


async def test_pinned_ids_are_reset_and_a_publisher_is_deleted(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    pins = {"repository_id": "22", "repository_owner_id": "11"}
    body = {"provider": "github", "claims": {"repository": "acme/engine"}, "pinnedIds": pins}
    added = (await client.post(API, headers=ada, json=body)).json()["id"]
    assert "repository_id=22" in (await client.get(PAGE)).text

    await send(client, f"{PAGE}/{added}/reset")
    [publisher] = (await client.get(API, headers=ada)).json()
    assert publisher["pinnedIds"] == {}

    await send(client, f"{PAGE}/{added}/delete")
    assert (await client.get(API, headers=ada)).json() == []


class TestWithAnotherIssuer:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        issuers = ("https://ci.example.com", *settings.oauth.publisher_issuers)
        return replace(settings, oauth=replace(settings.oauth, publisher_issuers=issuers))

    async def test_it_is_bound_by_lines_of_claims(
        self, client: httpx2.AsyncClient, ada: Headers
    ) -> None:
        page, fields = f"{PAGE}?provider=custom", {"issuer": "https://ci.example.com"}
        assert "<textarea" in (await client.get(page)).text

        await send(client, page=page, provider="custom", claims="sub=a=b\r\n team = x", **fields)

        [publisher] = (await client.get(API, headers=ada)).json()
        assert publisher["claims"] == {"sub": "a=b", "team": "x"}


class TestWithoutIssuers:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return replace(settings, oauth=replace(settings.oauth, publisher_issuers=()))

    @pytest.mark.usefixtures("ada")
    async def test_the_page_says_that_no_issuer_is_named(self, client: httpx2.AsyncClient) -> None:
        page = (await client.get(PAGE)).text

        assert "has named no issuer" in page
        assert "<textarea" not in page


async def test_only_who_manages_the_repository_sees_the_page(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "ada")
    await a_person(database, "bob")
    await a_repo(client, await sign_in(database, "ada"), "ada/engine")
    await log_in(client, "bob")

    assert (await client.get(PAGE)).status_code == 403
