"""`POST /oauth/introspect` (RFC 7662): an app with a secret asks about its own tokens."""

from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.core import clock
from hublet.core.database import Database
from oauth.token_flows import EXCHANGE, TOKEN, TestApp, an_app, error_of, refreshed, tokens_of
from people import a_token, a_user, an_organization

PATH = "/oauth/introspect"
INACTIVE = {"active": False}


async def asked(client: httpx2.AsyncClient, app: TestApp, token: str) -> object:
    response = await client.post(PATH, data={"token": token}, headers=app.basic)
    assert response.status_code == 200, response.text
    return response.json()


async def test_an_app_learns_what_its_tokens_may_do(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True, scopes=["profile", "write-repos"])
    given = await tokens_of(client, database, app)
    ada = await a_user(database, "ada")

    access = await client.post(PATH, data={"token": given["access_token"]}, headers=app.basic)
    refresh = await client.post(PATH, data={"token": given["refresh_token"]}, headers=app.basic)

    told = access.json()
    shared = {
        "active": True,
        "client_id": app.client_id,
        "scope": "profile write-repos",
        "username": "ada",
        "sub": ada.id,
        "iat": told["iat"],
        "iss": "http://hub.test",
        "aud": "http://hub.test",
    }
    assert told == shared | {"token_type": "bearer", "exp": told["iat"] + 28_800}
    assert refresh.json() == shared | {
        "iat": refresh.json()["iat"],
        "exp": refresh.json()["iat"] + 30 * 86_400,
    }
    assert abs(told["iat"] - clock.now().timestamp()) < 60


async def test_any_other_token_is_only_inactive(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = [await an_app(database, secret=True) for _ in range(2)]
    foreign = await tokens_of(client, database, other)
    replaced = (await tokens_of(client, database, app))["refresh_token"]
    await refreshed(client, app, replaced)

    told = [
        await asked(client, app, value)
        for value in (
            "unknown",
            foreign["access_token"],
            foreign["refresh_token"],
            await a_token(database, "ada"),
            app.secret or "",
            replaced,
        )
    ]

    assert told == [INACTIVE] * 6


async def test_what_has_ended_does_not_work(client: httpx2.AsyncClient, database: Database) -> None:
    app = await an_app(database, secret=True)
    given = await tokens_of(client, database, app)
    clock.move(timedelta(hours=8))
    expired = await asked(client, app, given["access_token"])
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1")

    assert expired == INACTIVE
    assert await asked(client, app, given["refresh_token"]) == INACTIVE


async def test_an_exchanged_token_works_as_long_as_the_membership(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.read}
    )
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO emails (id, user_id, address, address_key, is_primary, created_at,
                verified_at) VALUES ('e', $1, 'a@b.c', 'a@b.c', TRUE, 1, 1)
            """,
            ada.id,
        )
    app = await an_app(database, secret=True, organization_id=organization.id, token_exchange=True)
    body = {
        "grant_type": EXCHANGE,
        "subject_token": "a@b.c",
        "subject_token_type": "urn:hub:token-type:user-email",
    }
    given = (await client.post(TOKEN, data=body, headers=app.basic)).json()

    before = await asked(client, app, given["access_token"])
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, organization, ada)

    assert isinstance(before, dict)
    assert (before["active"], before["scope"]) == (True, "read-repos")
    assert await asked(client, app, given["access_token"]) == INACTIVE


@pytest.mark.parametrize("proof", ["none", "client id", "wrong secret"])
async def test_only_an_app_that_proves_who_it_is_may_ask(
    client: httpx2.AsyncClient, database: Database, proof: str
) -> None:
    app, public = await an_app(database, secret=True), await an_app(database)
    body = {"token": "x"}
    if proof == "client id":
        body["client_id"] = public.client_id
    headers = TestApp(app=app.app, secret="x").basic if proof == "wrong secret" else {}

    response = await client.post(PATH, data=body, headers=headers)

    assert error_of(response) == (401, "invalid_client")


async def test_a_token_must_be_named(client: httpx2.AsyncClient, database: Database) -> None:
    app = await an_app(database, secret=True)

    response = await client.post(PATH, data={"token": ""}, headers=app.basic)

    assert error_of(response) == (400, "invalid_request")
