"""The pages of an account: profile, addresses, tokens, keys, tools, and its end."""

import base64
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.database import Database
from login.login_pages import a_person, form_token_of, log_in, notices_in
from mail_servers import texts_of
from notifications.mailbox import letters, link_in
from people import Headers, an_organization, sign_in
from workers import drain

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKlD5fs7LCSzTvhFSEBwaFX6JVN5Rm+6oFZmgOaBYVDw ada"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser, with an organization of hers."""
    await a_person(database, "ada", email="ada@example.com")
    await an_organization(database, "engines", members={"ada": Role.admin, "bob": Role.admin})
    await log_in(client, "ada")
    return await sign_in(database, "ada")


async def send(
    client: httpx2.AsyncClient, action: str, page: str | None = None, **fields: Any
) -> httpx2.Response:
    token = form_token_of(await client.get(page or action), action)
    return await client.post(action, data={"form_token": token} | fields)


async def test_a_profile_has_another_name_and_a_picture(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    page = "/settings/profile"
    saved = await send(client, page, fullname="Ada Lovelace")
    refused = await send(client, page, fullname="")
    token = form_token_of(await client.get(page), f"{page}/picture")
    sent = {"data": {"form_token": token}, "files": {"picture": ("me.png", PNG)}}
    uploaded = await client.post(f"{page}/picture", **sent)  # type: ignore[arg-type]
    profile = (await client.get("/api/settings/profile", headers=ada)).json()
    picture = await client.get(f"/avatars/{profile['id']}")
    sent["files"] = {"picture": ("me.txt", b"<svg/>")}
    no_picture = await client.post(f"{page}/picture", **sent)  # type: ignore[arg-type]
    removed = await send(client, f"{page}/picture/remove", page)

    assert [each.status_code for each in (saved, refused, uploaded)] == [303, 422, 303]
    assert profile["fullname"] == "Ada Lovelace"
    assert "fullname" in notices_in(refused)[0]
    assert picture.content == PNG
    assert no_picture.status_code == 422
    assert removed.status_code == 303
    assert (await client.get(f"/avatars/{profile['id']}")).headers[
        "content-type"
    ] == "image/svg+xml"


async def test_addresses_are_added_verified_made_primary_and_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    page = "/settings/account"
    added = await send(client, f"{page}/emails", page, email="work@example.com")
    again = await send(client, f"{page}/emails", page, email="work@example.com")
    listed = (await client.get("/api/settings/emails", headers=ada)).json()
    first, second = (f"{page}/emails/{each['id']}" for each in listed)
    unverified = await client.get(page)
    await drain(database)
    await send(client, f"{second}/verify", page)
    await drain(database)
    sent = letters(database, "work")
    assert (await client.post(link_in(texts_of(sent[-1])[0]))).status_code == 200
    primary = await send(client, f"{second}/primary", page)
    removed = await send(client, f"{first}/remove", page)

    assert len(sent) == 2
    assert [each.status_code for each in (added, again, primary, removed)] == [303, 422, 303, 303]
    assert 'value="work@example.com"' in again.text
    assert f'action="{second}/verify"' in unverified.text
    assert f'action="{second}/primary"' not in unverified.text
    left = (await client.get("/api/settings/emails", headers=ada)).json()
    assert [(each["email"], each["isPrimary"]) for each in left] == [("work@example.com", True)]


async def test_a_token_is_shown_once_with_the_scopes_that_were_picked(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    page, new = "/settings/tokens", "/settings/tokens/new?name=ci&scopes=jobs&owner=engines"
    form = (await client.get(new)).text
    assert 'name="scope of engines" value="jobs" checked' in form
    assert 'value="fineGrained" required checked' in form
    fields = {"name": "ci", "role": "fineGrained", "expires": "30"}
    scopes = {"scope": ["read-repos"], "scope of engines": ["jobs", "webhooks"]}

    created = await send(client, page, new, **fields, **scopes)
    [value] = {word for word in created.text.replace("<", " ").replace(">", " ").split() if word.startswith("hf_") and len(word) > 20}  # fmt: skip
    who = (await client.get("/api/whoami-v2", headers={"Authorization": f"Bearer {value}"})).json()

    assert created.status_code == 201
    assert created.headers["cache-control"] == "no-store"
    granted = who["auth"]["accessToken"]["fineGrained"]
    assert granted["global"] == ["read-repos"]
    [scoped] = granted["scoped"]
    assert (scoped["entity"]["name"], scoped["permissions"]) == ("engines", ["jobs", "webhooks"])
    listed = await client.get(page)
    assert value not in listed.text
    [token] = [each for each in (await client.get("/api/settings/tokens", headers=ada)).json() if each["name"] == "ci"]  # fmt: skip
    await send(client, f"{page}/{token['id']}/revoke", page)
    assert (await client.get("/api/whoami-v2", headers={"Authorization": f"Bearer {value}"})).status_code == 401  # fmt: skip


@pytest.mark.usefixtures("ada")
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": ""}, "name"),
        ({"role": "root"}, "role"),
        ({"expires": "9"}, "expires must be one of the choices."),
        ({"scope": "everything"}, "scopes"),
        ({"scope of strangers": "jobs"}, "strangers is neither you nor an organization of yours."),
    ],
)
async def test_a_token_that_cannot_be_is_refused_with_what_was_typed(
    client: httpx2.AsyncClient, fields: dict[str, str], sentence: str
) -> None:
    typed = {"name": "laptop", "role": "fineGrained", "expires": "7"} | fields
    refused = await send(client, "/settings/tokens", "/settings/tokens/new", **typed)

    assert refused.status_code == 422
    assert sentence in notices_in(refused)[0]
    assert f'value="{typed["name"]}"' in refused.text


async def test_keys_and_tools_are_kept_as_the_api_keeps_them(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    keys, tools = "/settings/keys", "/settings/mcp"
    added = await send(client, keys, title="laptop", key=KEY)
    private = await send(client, keys, title="oops", key="-----BEGIN PRIVATE KEY-----")
    [key] = (await client.get("/api/settings/ssh-keys", headers=ada)).json()
    shown = await client.get(keys)
    removed = await send(client, f"{keys}/{key['id']}/remove", keys)
    saved = await send(client, tools, tool="hf_jobs", tools="hub_search, paper_search")
    absent = await send(client, tools, tools="hub_search", other="ada/nothing")

    assert [each.status_code for each in (added, private, removed)] == [303, 422, 303]
    assert key["fingerprint"] in shown.text
    assert "PRIVATE KEY" not in private.text
    assert (await client.get("/api/settings/ssh-keys", headers=ada)).json() == []
    assert (saved.status_code, absent.status_code) == (303, 422)
    chosen = (await client.get("/api/settings/mcp", headers=ada)).json()
    assert chosen["builtInTools"] == ["hf_jobs", "hub_search", "paper_search"]
    page = (await client.get(tools)).text
    assert 'value="hf_jobs" checked' in page
    assert 'value="hub_search paper_search"' in page
    assert "http://hub.test/mcp?login" in page


async def test_an_account_is_closed_by_typing_its_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    page, close = "/settings/account", "/settings/account/close"
    bob = await sign_in(database, "bob")
    slip = await send(client, close, page, confirm="bob")
    closed = await send(client, close, page, confirm="ada")

    assert (slip.status_code, closed.headers["location"]) == (422, "/")
    assert (await client.get("/api/whoami-v2", headers=ada)).status_code == 401
    assert (await client.get("/settings/profile")).headers["location"].startswith("/login")
    assert ("member.close-account", "ada", {}) in await audit_lines(client, bob)


async def test_the_last_administrator_names_another_one_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "looms", members={"ada": Role.admin, "bob": Role.write})

    refused = await send(client, "/settings/account/close", "/settings/account", confirm="ada")

    assert refused.status_code == 422
    assert "looms would be left without an administrator" in notices_in(refused)[0]
    assert (await client.get("/api/whoami-v2", headers=ada)).status_code == 200


@pytest.mark.usefixtures("ada")
async def test_what_gives_access_needs_a_recent_login(client: httpx2.AsyncClient) -> None:
    page = "/settings/account"
    token = form_token_of(await client.get(page), f"{page}/close")
    clock.move(timedelta(minutes=16))

    for path in ("/settings/account/close", "/settings/account/emails", "/settings/tokens"):
        response = await client.post(path, data={"form_token": token, "confirm": "ada"})
        assert response.headers["location"].startswith("/login?next="), path
    assert (await client.get("/settings/tokens/new")).status_code == 303
