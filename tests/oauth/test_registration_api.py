"""Apps that register by themselves (RFC 7591), and go when nobody uses them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import create_application, with_edge
from hublet.core import clock
from hublet.core.clock import micros
from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.first_start import prepare
from hublet.oauth import pruning
from hublet.oauth.apps.service import find_app, find_secret_of
from hublet.oauth.records import AppKind, OAuthApp
from hublet.oauth.routes import REGISTRATIONS
from hublet.tokens.records import ALL_SCOPES, Scope
from oauth.app_requests import PATH as MANAGED
from oauth.app_requests import create_app
from people import Headers, a_user
from workers import drain

PATH = "/oauth/register"
CALLBACK = "http://localhost/callback"
EVERY_SCOPE = " ".join(Scope)


async def register(client: httpx2.AsyncClient, **stated: Any) -> Any:
    response = await client.post(PATH, json={"redirect_uris": [CALLBACK]} | stated)
    assert response.status_code == 201, response.text
    return response.json()


async def known(database: Database, client_id: str) -> OAuthApp | None:
    async with database.read() as conn:
        return await find_app(conn, client_id)


async def test_a_public_app_registers_itself(
    client: httpx2.AsyncClient, database: Database
) -> None:
    before = micros() // 1_000_000
    registered = await register(
        client,
        client_name="Tool",
        client_uri="https://tool.example/",
        token_endpoint_auth_method="none",
        scope="openid jobs of-another-service",
        grant_types=["authorization_code", "refresh_token", "implicit"],
        response_types=["code"],
        software_id="unknown here",
    )

    assert registered == {
        "client_id": registered["client_id"],
        "client_id_issued_at": registered["client_id_issued_at"],
        "client_name": "Tool",
        "client_uri": "https://tool.example/",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": "openid jobs",
    }
    assert before <= registered["client_id_issued_at"] <= before + 60
    app = await known(database, registered["client_id"])
    assert app is not None
    assert app == OAuthApp(
        id=app.id,
        client_id=registered["client_id"],
        kind=AppKind.dynamic,
        name="Tool",
        client_uri="https://tool.example/",
        redirect_uris=(CALLBACK,),
        scopes=frozenset({Scope.openid, Scope.jobs}),
        token_seconds=28800,
        created_at=app.created_at,
        updated_at=app.updated_at,
    )


@pytest.mark.parametrize("method", [None, "client_secret_basic", "client_secret_post"])
async def test_who_does_not_say_none_gets_a_secret(
    client: httpx2.AsyncClient, database: Database, method: str | None
) -> None:
    stated = {} if method is None else {"token_endpoint_auth_method": method}
    response = await client.post(PATH, json={"redirect_uris": [CALLBACK]} | stated)

    registered = response.json()
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    assert registered == {
        "client_id": registered["client_id"],
        "client_id_issued_at": registered["client_id_issued_at"],
        "client_secret": registered["client_secret"],
        "client_secret_expires_at": 0,
        "client_name": "localhost",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": method or "client_secret_basic",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": EVERY_SCOPE,
    }
    app = await known(database, registered["client_id"])
    assert app is not None
    assert (app.confidential, app.scopes) == (True, ALL_SCOPES)
    async with database.read() as conn:
        assert await find_secret_of(conn, app, registered["client_secret"])


async def test_a_type_of_content_is_not_needed(client: httpx2.AsyncClient) -> None:
    body = json.dumps({"redirect_uris": [CALLBACK]}).encode()

    assert (await client.post(PATH, content=body)).status_code == 201


@pytest.mark.parametrize(
    ("stated", "description"),
    [
        pytest.param({}, "redirect_uris must be a list of texts.", id="none"),
        pytest.param({"redirect_uris": []}, "redirect_uris must list 1 to 20 URIs.", id="empty"),
        pytest.param(
            {"redirect_uris": [CALLBACK] * 21},
            "redirect_uris must list 1 to 20 URIs.",
            id="too many",
        ),
        pytest.param(
            {"redirect_uris": [7]}, "redirect_uris must be a list of texts.", id="a number"
        ),
        pytest.param(
            {"redirect_uris": CALLBACK}, "redirect_uris must be a list of texts.", id="a text"
        ),
        pytest.param(
            {"redirect_uris": [CALLBACK, "http://a.io/"]},
            "redirect_uris[1]: http is only for localhost, 127.0.0.1 and [::1]; other hosts need https.",
            id="plain http",
        ),
        pytest.param(
            {"redirect_uris": ["javascript:alert(1)"]},
            "redirect_uris[0]: the scheme javascript leads to no app.",
            id="what a browser runs",
        ),
    ],
)
async def test_a_wrong_redirect_uri_is_refused(
    client: httpx2.AsyncClient, stated: dict[str, Any], description: str
) -> None:
    response = await client.post(PATH, json=stated)

    assert (response.status_code, response.json()) == (
        400,
        {"error": "invalid_redirect_uri", "error_description": description},
    )


@pytest.mark.parametrize(
    ("stated", "description"),
    [
        pytest.param(
            {"token_endpoint_auth_method": "private_key_jwt"},
            "token_endpoint_auth_method must be one of: none, client_secret_basic, client_secret_post.",
            id="a method that is not here",
        ),
        pytest.param(
            {"token_endpoint_auth_method": ["none"]},
            "token_endpoint_auth_method must be one of: none, client_secret_basic, client_secret_post.",
            id="a list of methods",
        ),
        pytest.param({"client_name": 7}, "client_name must be a text.", id="a number as name"),
        pytest.param(
            {"client_name": ""},
            "client_name: the name of an app has 1 to 100 characters.",
            id="an empty name",
        ),
        pytest.param(
            {"client_name": "a\x00b"},
            "client_name: the name of an app has no control characters and no invisible ones.",
            id="a NUL in the name",
        ),
        pytest.param(
            {"client_name": "\ud800"},
            "client_name: the name of an app has no control characters and no invisible ones.",
            id="half a character",
        ),
        pytest.param({"client_uri": 7}, "client_uri must be a text.", id="a number as page"),
        pytest.param(
            {"client_uri": "javascript:alert(1)"},
            "client_uri: the address of a page begins with https://.",
            id="a page that a browser runs",
        ),
        pytest.param(
            {"client_uri": "http://a.io/"},
            "client_uri: http is only for localhost, 127.0.0.1 and [::1]; other hosts need https.",
            id="a page on plain http",
        ),
        pytest.param(
            {"grant_types": ["client_credentials"]},
            "grant_types must have authorization_code or the device code.",
            id="no grant of ours",
        ),
        pytest.param({"response_types": ["token"]}, "response_types must have code.", id="no code"),
        pytest.param(
            {"scope": 7}, "scope must be a text with blanks between the scopes.", id="no scopes"
        ),
        pytest.param(
            {"jwks": {"keys": [{"d": "x"}]}}, "jwks must have no private key.", id="a private key"
        ),
    ],
)
async def test_wrong_metadata_are_refused(
    client: httpx2.AsyncClient, stated: dict[str, Any], description: str
) -> None:
    # The test client itself would not write half a character.
    body = json.dumps({"redirect_uris": [CALLBACK]} | stated)
    response = await client.post(PATH, content=body)

    assert (response.status_code, response.json()) == (
        400,
        {"error": "invalid_client_metadata", "error_description": description},
    )


@pytest.mark.parametrize(
    ("body", "description"),
    [
        (b"", "The body must be JSON, with each name once."),
        (b"redirect_uris=x", "The body must be JSON, with each name once."),
        (b'{"a": 1, "a": 2}', "The body must be JSON, with each name once."),
        (b"[]", "The body must be a JSON object."),
        (b" " * 65_537, "The body must have at most 65536 bytes."),
    ],
)
async def test_a_body_that_is_no_object_is_refused(
    client: httpx2.AsyncClient, body: bytes, description: str
) -> None:
    response = await client.post(PATH, content=body)

    assert (response.status_code, response.json()) == (
        400,
        {"error": "invalid_client_metadata", "error_description": description},
    )


async def test_a_device_login_can_be_registered(client: httpx2.AsyncClient) -> None:
    device = "urn:ietf:params:oauth:grant-type:device_code"
    registered = await register(client, grant_types=[device])

    assert registered["grant_types"] == [device]


async def test_an_address_registers_some_apps_in_an_hour(client: httpx2.AsyncClient) -> None:
    for _ in range(REGISTRATIONS.quota):
        await client.post(PATH, json={})

    refused = await client.post(PATH, json={"redirect_uris": [CALLBACK]})

    assert refused.status_code == 429
    assert refused.json() == {
        "error": "slow_down",
        "error_description": "Too many requests: 20 are allowed in 3600 seconds; "
        f"try again in {refused.headers['retry-after']} seconds.",
    }


@asynccontextmanager
async def closed(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    settings = replace(settings, oauth=replace(settings.oauth, registration=False))
    async with open_database(Hub(settings=settings, keys=KeyRing.new())) as database:
        app: FastAPI = create_application(database)
        transport = httpx2.ASGITransport(app=with_edge(app))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            yield client


async def test_registration_can_be_switched_off(settings: Settings) -> None:
    async with closed(settings) as client:
        response = await client.post(PATH, json={"redirect_uris": [CALLBACK]})

    assert (response.status_code, response.json()) == (
        403,
        {
            "error": "access_denied",
            "error_description": "Apps cannot register by themselves at this hub: "
            "ask a user of it.",
        },
    )


async def test_nobody_manages_an_app_that_registered_itself(
    client: httpx2.AsyncClient, admin: Headers
) -> None:
    registered = await register(client)

    assert (await client.get(MANAGED, headers=admin)).json() == []
    path = f"{MANAGED}/{registered['client_id']}"
    assert (await client.get(path, headers=admin)).status_code == 404


async def _an_access(database: Database, app: OAuthApp, **columns: int | None) -> None:
    user = await a_user(database, "bob")
    times = {"expires_at": 0, "last_used_at": 0, "ended_at": None} | columns
    async with database.transaction() as conn:
        await conn.execute(
            """
            INSERT INTO oauth_accesses
                (id, user_id, app_id, via, scopes, organization_ids, created_at, last_used_at,
                 expires_at, ended_at)
            VALUES ($1, $2, $3, 'code', '[]', '[]', 1, $4, $5, $6)
            """,
            app.id, user.id, app.id, times["last_used_at"], times["expires_at"], times["ended_at"],
        )  # fmt: skip


DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("days", "access", "is_kept"),
    [
        pytest.param(29, None, True, id="new"),
        pytest.param(31, None, False, id="never used"),
        pytest.param(31, {"last_used_at": 1}, True, id="used yesterday"),
        pytest.param(31, {"expires_at": 1}, True, id="still allowed"),
        pytest.param(31, {"last_used_at": 1, "ended_at": 1}, True, id="ended yesterday"),
        pytest.param(31, {"ended_at": 1}, False, id="ended, and used long before"),
        pytest.param(31, {}, False, id="expired long ago"),
        pytest.param(31, {"expires_at": 1, "ended_at": 1}, False, id="ended before its time"),
    ],
)
async def test_an_app_that_nobody_uses_goes_after_30_days(
    client: httpx2.AsyncClient,
    database: Database,
    days: int,
    access: dict[str, int] | None,
    *,
    is_kept: bool,
) -> None:
    client_id = (await register(client))["client_id"]
    app = await known(database, client_id)
    assert app is not None
    clock.move(timedelta(days=days))
    if access is not None:
        yesterday = {name: micros() - days * DAY for name, days in access.items()}
        await _an_access(database, app, **yesterday)

    await pruning.prune_apps(database)

    assert (await known(database, client_id) is not None) is is_kept


async def test_an_app_of_a_user_is_never_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    clock.move(timedelta(days=400))

    await pruning.prune_apps(database)

    assert await known(database, client_id) is not None


async def test_many_unused_apps_go_batch_by_batch(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    ids = [(await register(client))["client_id"] for _ in range(5)]
    clock.move(timedelta(days=31))

    await pruning.prune_apps(database)

    assert [await known(database, each) for each in ids] == [None] * 5


async def test_a_worker_looks_for_unused_apps_every_day(
    client: httpx2.AsyncClient, database: Database
) -> None:
    client_id = (await register(client))["client_id"]
    await prepare(database)
    await drain(database)
    assert await known(database, client_id) is not None
    clock.move(timedelta(days=31))
    await drain(database)

    assert await known(database, client_id) is None
    async with database.read() as conn:
        waiting = await conn.fetch_all("SELECT id FROM tasks WHERE kind = $1", pruning.PRUNE_APPS)
    tomorrow = (clock.now() + timedelta(days=1)).date().isoformat()
    assert [row["id"] for row in waiting] == [f"oauth.prune-apps.{tomorrow}"]
