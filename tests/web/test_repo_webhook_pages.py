"""Webhooks that watch a repository are listed, added, paused and deleted on its pages."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.database import Database
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, an_organization, sign_in
from repositories import a_repo

API = "/api/settings/webhooks"
URL = "https://ci.example.org/ada"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser, and her repository."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    ada = await sign_in(database, "ada")
    await a_repo(client, ada, "ada/engine")
    return ada


async def send(
    client: httpx2.AsyncClient,
    action: str,
    page: str = "/ada/engine/settings/webhooks",
    **fields: Any,
) -> httpx2.Response:
    token = form_token_of(await client.get(page), action)
    return await client.post(action, data={"form_token": token, "owner": "ada"} | fields)


async def add(client: httpx2.AsyncClient, **fields: Any) -> httpx2.Response:
    page = "/ada/engine/settings/webhooks"
    return await send(client, page, **({"url": URL, "domains": ["repo"]} | fields))


async def test_a_new_one_watches_this_repository_and_hides_its_secret(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await add(client, domains=["repo", "discussion"], secret="s3cret-of-ada")

    assert response.headers["location"] == "/ada/engine/settings/webhooks"
    [webhook] = (await client.get(API, headers=ada)).json()
    assert [each["name"] for each in webhook["watched"]] == ["ada/engine"]
    assert webhook["url"] == URL
    assert webhook["domains"] == ["repo", "discussion"]
    assert webhook["hasSecret"] is True
    page = (await client.get("/ada/engine/settings/webhooks")).text
    assert URL in page
    assert "with a secret" in page
    assert "s3cret-of-ada" not in page


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({"url": "ftp://ci.example.com"}, "url", id="an address of no web server"),
        pytest.param({"domains": []}, "domains", id="nothing to hear of"),
        pytest.param({"domains": ["weather"]}, "domains", id="an unknown domain"),
        pytest.param({"secret": "schlüssel"}, "secret", id="a secret that is not ASCII"),
        pytest.param({"owner": "grace"}, "owner must be you", id="somebody else's"),
    ],
)
async def test_what_is_refused_comes_back_without_its_secret(
    client: httpx2.AsyncClient, ada: Headers, fields: dict[str, Any], sentence: str
) -> None:
    response = await add(client, **({"secret": "s3cret-of-ada"} | fields))

    assert response.status_code == 422
    assert sentence in notices_in(response)[0].casefold()
    assert f'value="{fields.get("url", URL)}"' in response.text
    assert "s3cret" not in response.text
    assert "schlüssel" not in response.text
    assert (await client.get(API, headers=ada)).json() == []


async def test_it_is_paused_enabled_and_deleted(client: httpx2.AsyncClient, ada: Headers) -> None:
    await add(client)
    [webhook] = (await client.get(API, headers=ada)).json()
    path = f"/settings/webhooks/{webhook['id']}"
    assert f'href="{path}"' in (await client.get("/ada/engine/settings/webhooks")).text

    for verb, disabled in (("disable", True), ("enable", False)):
        done = await send(client, f"{path}/{verb}", next="/ada/engine/settings/webhooks")
        assert (done.status_code, done.headers["location"]) == (
            303,
            "/ada/engine/settings/webhooks",
        )
        [webhook] = (await client.get(API, headers=ada)).json()
        assert webhook["disabled"] is disabled
    await send(client, f"{path}/delete")

    assert (await client.get(API, headers=ada)).json() == []


async def test_only_those_that_watch_it_are_listed(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/numbers", type="dataset")
    for name, watched in {
        "direct": {"type": "model", "name": "ada/engine"},
        "owner": {"type": "user", "name": "ada"},
        "other": {"type": "dataset", "name": "ada/numbers"},
    }.items():
        body = {"url": f"https://{name}.example.com", "watched": [watched], "domains": ["repo"]}
        assert (await client.post(API, headers=ada, json=body)).status_code == 200

    page = (await client.get("/ada/engine/settings/webhooks")).text

    assert "https://direct.example.com" in page
    assert "https://owner.example.com" in page
    assert "watches all of ada" in page
    assert "https://other.example.com" not in page


async def test_the_organizations_are_for_its_administrators(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_person(database, "grace")
    await an_organization(database, "analytical", members={"ada": Role.admin, "grace": Role.write})
    await a_repo(client, ada, "analytical/loom")
    page = "/analytical/loom/settings/webhooks"
    fields = {"url": URL, "domains": "repo", "owner": "analytical"}
    await send(client, page, page, **fields)
    theirs = "/api/organizations/analytical/settings/webhooks"
    assert URL in (await client.get(page)).text

    await log_in(client, "grace")
    shown = await client.get(page)
    refused = await send(client, page, page, **fields)
    assert URL not in shown.text
    assert "This needs the role admin" in notices_in(refused)[0]
    assert len((await client.get(theirs, headers=ada)).json()) == 1


async def test_who_may_not_manage_the_repository_finds_no_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_person(database, "grace")
    await log_in(client, "grace")

    assert (await client.get("/ada/engine/settings/webhooks")).status_code == 403
    await a_repo(client, ada, "ada/secret", private=True)
    assert (await client.get("/ada/secret/settings/webhooks")).status_code == 404


@pytest.mark.usefixtures("ada")
async def test_a_secret_needs_a_recent_login(client: httpx2.AsyncClient) -> None:
    page = "/ada/engine/settings/webhooks"
    token = form_token_of(await client.get(page), page)
    clock.move(timedelta(minutes=20))

    response = await client.post(page, data={"form_token": token, "owner": "ada", "url": URL})

    assert response.headers["location"].startswith("/login?next=")
