"""A person in front of a browser, an app that sends them here, and what both see."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import httpx2

from hublet.core.clock import now
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.login import sessions
from hublet.login.records import Session, Visitor
from hublet.oauth.apps import client_secrets as secrets
from hublet.oauth.apps import service as apps
from hublet.oauth.apps import store
from hublet.oauth.records import AppKind, OAuthApp
from hublet.tokens.records import Scope
from people import a_user

CALLBACK = "https://app.example/callback"
VERIFIER = "v" * 43
CHALLENGE = urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
ISSUER = "http://hub.test"


async def an_app(
    database: Database,
    *,
    name: str = "Loom",
    kind: AppKind = AppKind.registered,
    owner: str = "olga",
    redirect_uris: Sequence[str] = (CALLBACK,),
    scopes: Sequence[Scope] = (Scope.openid, Scope.profile, Scope.read_repos),
    client_id: str = "loom",
    client_uri: str | None = None,
    dynamic_query: bool = False,
    with_secret: bool = False,
) -> OAuthApp:
    """Return a new app; name only what the test is about."""
    user = await a_user(database, owner)
    app = OAuthApp(
        id=new_object_id(),
        client_id=client_id,
        kind=kind,
        owner_id=user.id if kind is AppKind.registered else None,
        name=name,
        client_uri=client_uri,
        redirect_uris=tuple(redirect_uris),
        scopes=frozenset(scopes),
        dynamic_query=dynamic_query,
        token_seconds=28800,
        created_at=now(),
        updated_at=now(),
    )
    async with database.transaction() as conn:
        await store.add(conn, app)
        if with_secret:
            await secrets.issue(conn, app.id)
        found = await apps.find_app(conn, client_id)
    assert found is not None
    return found


async def signed_in(client: httpx2.AsyncClient, database: Database, name: str = "ada") -> Session:
    """Let this browser be signed in as a user of this name, from now on."""
    user = await a_user(database, name)
    async with database.transaction() as conn:
        session, value = await sessions.begin(
            conn, user, Visitor(address="192.0.2.7", agent="Firefox")
        )
    client.cookies.clear()
    client.cookies.set("hublet_session", value)
    return session


def authorization_parameters(**changes: str | None) -> dict[str, str]:
    """Return the parameters of an authorization request that is in order."""
    parameters: dict[str, str | None] = {
        "response_type": "code",
        "client_id": "loom",
        "redirect_uri": CALLBACK,
        "scope": "openid profile",
        "state": "s1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    return {name: value for name, value in (parameters | changes).items() if value is not None}


async def request_authorization(
    client: httpx2.AsyncClient, **changes: str | None
) -> httpx2.Response:
    return await client.get("/oauth/authorize", params=authorization_parameters(**changes))


def hidden_fields(page: httpx2.Response, action: str) -> dict[str, str]:
    """Return the hidden fields of the page's form that is sent to this path."""
    [form] = re.findall(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page.text, re.DOTALL)
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in fields}


async def answer_consent(
    client: httpx2.AsyncClient, page: httpx2.Response, decision: str = "allow", *organizations: str
) -> httpx2.Response:
    """Answer the question of a consent page."""
    fields = hidden_fields(page, "/oauth/consent") | {"decision": decision}
    return await client.post("/oauth/consent", data=fields | {"organization": list(organizations)})


def redirect_parameters(response: httpx2.Response, callback: str = CALLBACK) -> dict[str, str]:
    """Return what an app finds in the address that the browser was sent to."""
    assert response.status_code == 303, response.text
    address = response.headers["location"]
    assert address.startswith(callback), address
    return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True, strict_parsing=True))


def text_of(page: httpx2.Response) -> str:
    """Return what a reader sees of a page, with single blanks."""
    body = page.text.partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
