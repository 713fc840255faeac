"""Of which private repositories a webhook hears: those that the token could read which set it."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from repositories import a_push, a_repo
from security.credentials import ALL_NEEDED, FULL, NO_REPOS, OF_APP, WEBHOOKS, credential
from webhooks.watchers import list_triggered

URL = "https://example.com/hook"
WATCHED = [{"type": "user", "name": "ada"}, {"type": "org", "name": "lab"}]
HEARD = {
    FULL: ["ada/open", "ada/secret", "lab/secret"],
    ALL_NEEDED: ["ada/open", "ada/secret", "lab/secret"],
    OF_APP: ["ada/open", "ada/secret"],
    NO_REPOS: ["ada/open"],
    WEBHOOKS: ["ada/open"],
}


@pytest.fixture
async def repos(client: httpx2.AsyncClient, database: Database, ada: Headers) -> dict[str, str]:
    await an_organization(database, "lab", members={"ada": Role.admin})
    return {
        name: await a_repo(client, ada, name, private=name.endswith("secret"))
        for name in ("ada/open", "ada/secret", "lab/secret")
    }


async def _set(
    client: httpx2.AsyncClient, headers: Headers, webhook_id: str = "", **more: Any
) -> str:
    path = "/api/settings/webhooks" + (f"/{webhook_id}" if webhook_id else "")
    body = {"url": URL, "watched": WATCHED, "domains": ["repo"], **more}
    response = await client.post(path, headers=headers, json=body)
    assert response.status_code == 200, response.text
    found: str = response.json()["webhook"]["id"]
    return found


async def _heard(database: Database, webhook_id: str, repos: dict[str, str]) -> list[str]:
    """Change every repository; return of which ones the webhook is to be told."""
    heard = []
    for name, repo_id in repos.items():
        before = len(await list_triggered(database, webhook_id))
        await a_push(database, repo_id, {"a.txt": name.encode()})
        after = await list_triggered(database, webhook_id)
        if [each["state"] for each in after[before:]] == ["fresh"]:
            heard.append(name)
    return heard


@pytest.mark.parametrize(("token", "expected"), HEARD.items(), ids=HEARD)
async def test_a_webhook_that_watches_accounts_hears_what_its_token_could_read(
    client: httpx2.AsyncClient,
    database: Database,
    repos: dict[str, str],
    token: str,
    expected: list[str],
) -> None:
    headers = await credential(database, token, organization_id="")
    webhook_id = await _set(client, headers)
    assert await _heard(database, webhook_id, repos) == expected


async def test_who_changes_only_the_url_hears_no_more_than_their_token_reads(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repos: dict[str, str]
) -> None:
    webhook_id = await _set(client, ada)
    narrow = await sign_in(database, "ada", scopes=["webhooks"])
    body = {"url": "https://example.com/other"}
    changed = await client.post(f"/api/settings/webhooks/{webhook_id}", headers=narrow, json=body)
    assert changed.status_code == 200, changed.text
    assert await _heard(database, webhook_id, repos) == ["ada/open"]
    await _set(client, ada, webhook_id)
    assert await _heard(database, webhook_id, repos) == list(repos)


async def test_a_repository_that_becomes_private_is_heard_of_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repos: dict[str, str]
) -> None:
    narrow = await sign_in(database, "ada", scopes=["webhooks"])
    webhook_id = await _set(client, narrow, watched=[{"type": "model", "name": "ada/open"}])
    await client.put("/api/models/ada/open/settings", headers=ada, json={"private": True})
    await a_push(database, repos["ada/open"], {"a.txt": b"one"})
    last = (await list_triggered(database, webhook_id))[-1]
    assert (last["state"], last["reason"]) == ("unsent", "no-access")
