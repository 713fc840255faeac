"""Apps, codes and device codes for tests of OAuth, one line each."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.oauth import devices
from hublet.oauth.apps import client_secrets as secrets
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import codes
from hublet.oauth.authorize.codes import challenge_of
from hublet.oauth.authorize.records import NewAuthorizationCode
from hublet.oauth.records import AppKind, OAuthApp, Permission
from hublet.tokens.records import Scope
from people import Headers, a_user

TOKEN = "/oauth/token"
REDIRECT_URI = "http://localhost:49282/callback"
VERIFIER = "v" * 43
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestApp:
    """An app as a test knows it: with its secret, if it has one."""

    __test__ = False

    app: OAuthApp
    secret: str | None = None

    @property
    def client_id(self) -> str:
        return self.app.client_id

    @property
    def basic(self) -> Headers:
        return basic(self.client_id, self.secret or "")


def basic(client_id: str, secret: str) -> Headers:
    text = b64encode(f"{client_id}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


async def an_app(
    database: Database,
    *,
    scopes: Sequence[str] = ("read-repos",),
    secret: bool = False,
    **more: Any,
) -> TestApp:
    """Return a new app; name only what the test is about."""
    at = clock.now()
    app = OAuthApp(
        id=new_object_id(),
        client_id=new_object_id(),
        kind=AppKind.registered,
        name="Engine",
        token_seconds=28_800,
        scopes=frozenset(map(Scope, scopes)),
        redirect_uris=("http://localhost/callback",),
        created_at=at,
        updated_at=at,
    )
    app = replace(app, **more)
    async with database.transaction() as conn:
        await apps.add(conn, app)
        value = (await secrets.issue(conn, app.id))[1] if secret else None
    return TestApp(app=replace(app, confidential=secret), secret=value)


async def a_code(
    database: Database,
    app: TestApp,
    *,
    user: str = "ada",
    scopes: Sequence[str] | None = None,
    organization_ids: Sequence[str] = (),
    **more: Any,
) -> str:
    """Return a code that this user allowed; by default PKCE binds it to `VERIFIER`."""
    owner = await a_user(database, user)
    permission = Permission(
        user_id=owner.id,
        app_id=app.app.id,
        scopes=app.app.scopes if scopes is None else frozenset(map(Scope, scopes)),
        organization_ids=frozenset(organization_ids),
    )
    code = NewAuthorizationCode(
        permission=permission,
        redirect_uri=REDIRECT_URI,
        challenge=challenge_of(VERIFIER),
        authenticated_at=clock.now(),
    )
    async with database.transaction() as conn:
        return await codes.issue(conn, replace(code, **more))


def redemption(code: str, **changes: str | None) -> dict[str, str]:
    """Return the parameters that redeem a code; None leaves one out."""
    parameters: dict[str, str | None] = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT_URI,
        "code_verifier": VERIFIER,
    }
    merged = parameters | changes
    return {name: value for name, value in merged.items() if value is not None}


async def tokens_of(
    client: httpx2.AsyncClient, database: Database, app: TestApp, **code: Any
) -> Answer:
    """Return what the app gets for a new code."""
    value = await a_code(database, app, **code)
    if app.secret is None:
        body = redemption(value, client_id=app.client_id)
        response = await client.post(TOKEN, data=body)
    else:
        response = await client.post(TOKEN, data=redemption(value), headers=app.basic)
    assert response.status_code == 200, response.text
    answer: Answer = response.json()
    return answer


async def refreshed(
    client: httpx2.AsyncClient, app: TestApp, refresh_token: str, **more: str
) -> httpx2.Response:
    body = {"grant_type": "refresh_token", "refresh_token": refresh_token, **more}
    if app.secret is not None:
        return await client.post(TOKEN, data=body, headers=app.basic)
    return await client.post(TOKEN, data=body | {"client_id": app.client_id})


async def decide(
    database: Database,
    user_code: str,
    *,
    user: str = "ada",
    approved: bool = True,
    organization_ids: Sequence[str] = (),
) -> bool:
    """Decide about a device code as this user; False when it was decided before."""
    owner = await a_user(database, user)
    async with database.transaction() as conn:
        device = await devices.find_by_user_code(conn, user_code)
        return device is not None and await devices.decide(
            conn,
            device,
            approved=approved,
            user_id=owner.id,
            organization_ids=organization_ids,
            authenticated_at=clock.now(),
        )


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


async def works(client: httpx2.AsyncClient, access_token: str) -> bool:
    response = await client.get("/api/whoami-v2", headers=bearer(access_token))
    return response.status_code == 200


def error_of(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]
