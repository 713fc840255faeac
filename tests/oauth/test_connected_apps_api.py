"""What a person's apps have access to, and taking it back."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.clock import wire
from hublet.core.database import Database
from hublet.oauth.access import service as accesses
from hublet.oauth.access.records import Origin
from hublet.oauth.authorize import store
from hublet.oauth.clients import resolve_app
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, Access, OAuthApp, Permission, Via
from hublet.tokens.records import ALL_SCOPES, Scope, TokenRole
from oauth.browser_flows import (
    CALLBACK,
    VERIFIER,
    an_app,
    answer_consent,
    hidden_fields,
    redirect_parameters,
    request_authorization,
    signed_in,
    text_of,
)
from people import Headers, a_user, an_organization, sign_in

API = "/api/settings/oauth-accesses"
PAGE = "/settings/connected-applications"


async def an_access(
    database: Database,
    app: OAuthApp,
    *,
    name: str = "ada",
    organizations: frozenset[str] = frozenset(),
    scopes: frozenset[Scope] = frozenset({Scope.profile, Scope.openid}),
) -> Access:
    user = await a_user(database, name)
    permission = Permission(
        user_id=user.id,
        app_id=app.id,
        scopes=scopes,
        organization_ids=organizations,
    )
    origin = Origin(address="192.0.2.7", agent="Mozilla/5.0 (X11; Linux) Firefox/140.0")
    async with database.transaction() as conn:
        return await accesses.begin(conn, permission, Via.device, origin=origin)


async def test_the_command_line_is_shown_with_the_inbox(
    client: httpx2.AsyncClient, database: Database
) -> None:
    command_line = await resolve_app(database, COMMAND_LINE_CLIENT_ID)
    assert command_line is not None
    await an_access(database, command_line, scopes=ALL_SCOPES)
    await an_access(database, await an_app(database), scopes=ALL_SCOPES)
    await signed_in(client, database)

    page = text_of(await client.get(PAGE))

    assert page.count("Run jobs") == 2
    assert page.count("Read your notifications, and change what you are notified of") == 1


async def a_signed_in_app(client: httpx2.AsyncClient) -> dict[str, Any]:
    """Let the app Loom have access for whoever is signed in; return its tokens."""
    code = redirect_parameters(await answer_consent(client, await request_authorization(client)))[
        "code"
    ]
    response = await client.post(
        "/oauth/token",
        data={
            "grant_type": "authorization_code",
            "client_id": "loom",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
        },
    )
    assert response.status_code == 200
    tokens: dict[str, Any] = response.json()
    return tokens


async def test_an_access_is_listed_with_what_it_reaches(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    app = await an_app(database)
    access = await an_access(database, app, organizations=frozenset({acme.id}))
    await an_access(database, app, name="bob")

    response = await client.get(API, headers=ada)

    assert response.status_code == 200
    assert response.json() == [
        {
            "id": access.id,
            "app": {"clientId": "loom", "name": "Loom"},
            "via": "device",
            "scopes": ["openid", "profile"],
            "organizations": [{"id": acme.id, "name": "acme"}],
            "createdAt": wire(access.created_at),
            "lastUsedAt": wire(access.last_used_at),
            "expiresAt": wire(access.expires_at),
            "address": "192.0.2.7",
            "agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0",
        }
    ]


async def test_a_revoked_access_is_listed_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    app = await an_app(database)
    first, second = await an_access(database, app), await an_access(database, app)

    revoked = await client.delete(f"{API}/{second.id}", headers=ada)

    assert (revoked.status_code, revoked.json()) == (200, {})
    left = (await client.get(API, headers=ada)).json()
    assert [each["id"] for each in left] == [first.id]


@pytest.mark.parametrize("whose", ["nobody", "bob", "ended"])
async def test_only_an_access_of_ones_own_can_be_revoked(
    client: httpx2.AsyncClient, database: Database, ada: Headers, whose: str
) -> None:
    app = await an_app(database)
    ids = {
        "nobody": "f" * 24,
        "bob": (await an_access(database, app, name="bob")).id,
        "ended": (await an_access(database, app)).id,
    }
    await client.delete(f"{API}/{ids['ended']}", headers=ada)

    response = await client.delete(f"{API}/{ids[whose]}", headers=ada)

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no access {ids[whose]}, or it has ended."}


async def test_revoking_takes_a_full_token(client: httpx2.AsyncClient, database: Database) -> None:
    access = await an_access(database, await an_app(database))
    reading = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["openid", "profile"])

    assert (await client.get(API, headers=reading)).status_code == 200
    assert (await client.get(API, headers=scoped)).status_code == 403
    assert (await client.delete(f"{API}/{access.id}", headers=reading)).status_code == 403
    assert (await client.delete(f"{API}/{access.id}", headers=scoped)).status_code == 403
    assert (await client.get(API)).status_code == 401


async def test_a_session_is_no_token(client: httpx2.AsyncClient, database: Database) -> None:
    await signed_in(client, database)

    assert (await client.get(API)).status_code == 401


async def test_revoking_ends_the_tokens_and_the_consent_at_once(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    tokens = await a_signed_in_app(client)
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    before = await client.get("/oauth/userinfo", headers=bearer)

    page = await client.get(PAGE)
    [access_id] = [
        part.split("/")[3] for part in page.text.split('action="')[1:] if "/revoke" in part
    ]
    path = f"{PAGE}/{access_id}/revoke"
    revoked = await client.post(path, data=hidden_fields(page, path))

    assert before.status_code == 200
    assert (revoked.status_code, revoked.headers["location"]) == (303, PAGE)
    assert (await client.get("/oauth/userinfo", headers=bearer)).status_code == 401
    refreshed = await client.post(
        "/oauth/token",
        data={
            "grant_type": "refresh_token",
            "client_id": "loom",
            "refresh_token": tokens["refresh_token"],
        },
    )
    assert refreshed.json()["error"] == "invalid_grant"
    assert "No app has access to your account." in text_of(await client.get(PAGE))
    assert "Allow Loom?" in text_of(await request_authorization(client))


async def test_the_page_tells_what_each_app_may_do(
    client: httpx2.AsyncClient, database: Database
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    access = await an_access(database, await an_app(database), organizations=frozenset({acme.id}))
    await signed_in(client, database)

    page = await client.get(PAGE)

    at = access.created_at.strftime("%Y-%m-%d %H:%M UTC")
    assert page.status_code == 200
    assert text_of(page) == (
        "Connected applications These apps act for you, as far as you allowed it. "
        "What you take back stops working at once. Loom "
        f"Allowed with a device code from 192.0.2.7 with Firefox on Linux · since {at} · "
        f"last used {at} Reaches acme What it may do "
        "Get an ID token in addition to the access token "
        "See your profile, such as your user name and avatar Revoke"
    )


async def test_all_of_them_go_at_once_but_not_those_of_others(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    app = await an_app(database)
    other = await an_app(database, client_id="warp", name="Warp")
    for each in (app, app, other):
        await an_access(database, each)
    of_bob = await an_access(database, app, name="bob")
    await signed_in(client, database)
    await answer_consent(client, await request_authorization(client))
    path = f"{PAGE}/revoke-all"

    response = await client.post(path, data=hidden_fields(await client.get(PAGE), path))

    assert response.status_code == 303
    assert (await client.get(API, headers=ada)).json() == []
    assert "Allow Loom?" in text_of(await request_authorization(client))
    bob = await sign_in(database, "bob")
    assert [each["id"] for each in (await client.get(API, headers=bob)).json()] == [of_bob.id]


@pytest.mark.parametrize(
    "path", [PAGE + "/revoke-all", PAGE + "/{id}/revoke", PAGE + "/{id}/forget"]
)
async def test_a_form_that_the_person_did_not_send_revokes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str
) -> None:
    access = await an_access(database, await an_app(database))
    await signed_in(client, database)

    response = await client.post(path.format(id=access.id), data={"form_token": "0" * 64})

    assert response.status_code == 403
    assert len((await client.get(API, headers=ada)).json()) == 1


async def test_who_is_not_signed_in_signs_in_first(client: httpx2.AsyncClient) -> None:
    response = await client.get(PAGE)

    assert response.headers["location"] == f"/login?next={PAGE}"


async def test_what_was_allowed_and_is_not_in_use_can_be_forgotten(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    await signed_in(client, database, "bob")
    await answer_consent(client, await request_authorization(client))
    session = await signed_in(client, database)
    await answer_consent(client, await request_authorization(client))
    path = f"{PAGE}/{app.id}/forget"

    shown = await client.get(PAGE)
    response = await client.post(path, data=hidden_fields(shown, path))

    assert "Allowed before These apps have no access now" in text_of(shown)
    assert response.status_code == 303
    assert "Allowed before" not in text_of(await client.get(PAGE))
    assert "Allow Loom?" in text_of(await request_authorization(client))
    async with database.read() as conn:
        assert await store.find_consent(conn, user_id=session.user_id, app_id=app.id) is None
    await signed_in(client, database, "bob")
    assert "code" in redirect_parameters(await request_authorization(client))


async def test_what_is_in_use_is_listed_once(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database)
    await signed_in(client, database)
    await a_signed_in_app(client)

    assert "Allowed before" not in text_of(await client.get(PAGE))
