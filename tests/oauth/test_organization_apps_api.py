"""What administrators of an organization see and decide about apps that are bound to it."""

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.oauth.apps.administration import exchange_seconds_of
from hublet.tokens.records import TokenRole
from oauth.app_requests import create_app
from people import Headers, an_organization, sign_in

APPS = "/api/organizations/acme/oauth-apps"
SETTINGS = "/api/organizations/acme/oauth-settings"


async def test_administrators_see_all_apps_of_the_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin, "bob": Role.admin})
    await an_organization(database, "void", members={"ada": Role.admin})
    bob = await sign_in(database, "bob")
    first = await create_app(client, ada, organization="acme")
    await create_app(client, ada)
    await create_app(client, ada, organization="void")
    second = await create_app(client, bob, organization="acme")

    response = await client.get(APPS, headers=bob)

    assert (response.status_code, response.json()) == (200, [first, second])


async def test_others_see_and_decide_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.write, "bob": Role.admin})
    reading = await sign_in(database, "bob", role=TokenRole.read)

    for headers in (ada, reading):
        answers = [
            await client.get(APPS, headers=headers),
            await client.get(SETTINGS, headers=headers),
            await client.patch(SETTINGS, headers=headers, json={"exchangeSeconds": 60}),
        ]
        assert [each.status_code for each in answers] == [403, 403, 403]
    nowhere = await client.get("/api/organizations/nowhere/oauth-settings", headers=ada)
    assert nowhere.status_code == 404


async def test_tokens_of_an_exchange_live_8_hours_unless_it_is_decided_otherwise(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "acme", members={"ada": Role.admin})

    before = await client.get(SETTINGS, headers=ada)
    changed = await client.patch(SETTINGS, headers=ada, json={"exchangeSeconds": 2592000})
    nothing = await client.patch(SETTINGS, headers=ada, json={})

    assert (before.status_code, before.json()) == (200, {"exchangeSeconds": 28800})
    assert (changed.status_code, changed.json()) == (200, {"exchangeSeconds": 2592000})
    assert (nothing.status_code, nothing.json()) == (200, {"exchangeSeconds": 2592000})
    assert (await client.get(SETTINGS, headers=ada)).json() == {"exchangeSeconds": 2592000}
    async with database.read() as conn:
        assert await exchange_seconds_of(conn, organization.id) == 2592000
        assert await exchange_seconds_of(conn, "0" * 24) == 28800
    assert await audit_lines(client, ada, organization="acme") == [
        ("oauth-settings.update", "acme", {"exchange_seconds": 2592000})
    ]
    await client.patch(SETTINGS, headers=ada, json={"exchangeSeconds": 60})
    assert (await client.get(SETTINGS, headers=ada)).json() == {"exchangeSeconds": 60}


@pytest.mark.parametrize("seconds", [59, 2592001, 0, -1, "x", None, 60.5])
async def test_the_time_has_bounds(
    client: httpx2.AsyncClient, database: Database, ada: Headers, seconds: object
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin})

    response = await client.patch(SETTINGS, headers=ada, json={"exchangeSeconds": seconds})

    assert response.status_code == 400
    assert "exchangeSeconds" in response.json()["error"]
