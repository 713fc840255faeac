"""The pages on which a person keeps the apps they registered."""

import re
from html import unescape
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.oauth.apps import service as apps
from hublet.oauth.records import OAuthApp
from hublet.tokens.records import Scope
from oauth.browser_flows import an_app, hidden_fields, signed_in, text_of
from people import an_organization

PAGE = "/settings/applications"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


async def send(
    client: httpx2.AsyncClient, page: str, action: str, **fields: Any
) -> httpx2.Response:
    """Send the form of a page that leads to this path, with these fields."""
    hidden = hidden_fields(await client.get(page), action)
    return await client.post(action, data=hidden | fields)


async def create(client: httpx2.AsyncClient, **fields: Any) -> httpx2.Response:
    return await send(client, f"{PAGE}/new", PAGE, **({"name": "Loom"} | fields))


async def found(database: Database, client_id: str) -> OAuthApp:
    async with database.read() as conn:
        found = await apps.find_app(conn, client_id)
    assert found is not None
    return found


async def test_who_has_none_is_shown_the_way(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database)

    page = await client.get(PAGE)

    assert page.status_code == 200
    assert text_of(page) == (
        "Applications Apps that you registered, so that people can sign in to them with their "
        "account here. You have registered none yet. Register an app"
    )


async def test_an_app_is_registered_as_the_form_says(
    client: httpx2.AsyncClient, database: Database
) -> None:
    session = await signed_in(client, database)

    response = await create(
        client,
        redirect_uris="https://app.example/cb\r\n\r\n http://localhost/cb ",
        client_uri="https://app.example",
        scope=["openid", "jobs"],
        dynamic_query="on",
    )

    assert response.status_code == 303
    place, client_id = response.headers["location"].rsplit("/", 1)
    assert place == PAGE
    app = await found(database, client_id)
    assert (app.name, app.owner_id, app.organization_id) == ("Loom", session.user_id, None)
    assert app.redirect_uris == ("https://app.example/cb", "http://localhost/cb")
    assert app.client_uri == "https://app.example"
    assert app.scopes == {Scope.openid, Scope.jobs}
    assert app.dynamic_query
    assert not app.confidential


async def test_the_form_offers_what_is_usual(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database)

    page = await client.get(f"{PAGE}/new")

    ticked = re.findall(r'name="scope" value="([\w-]+)" checked', page.text)
    assert ticked == ["openid", "profile"]
    assert page.text.count('name="scope"') == len(Scope)
    assert 'name="organization"' not in page.text


async def test_an_administrator_may_bind_an_app(
    client: httpx2.AsyncClient, database: Database
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.admin})
    await an_organization(database, "globex", members={"ada": Role.write, "bob": Role.admin})
    await signed_in(client, database)

    offered = re.findall(r'<option value="(\w*)"', (await client.get(f"{PAGE}/new")).text)
    bound = await create(client, organization="acme")
    refused = await create(client, organization="globex")

    assert offered == ["", "acme"]
    assert (
        await found(database, bound.headers["location"].rsplit("/")[-1])
    ).organization_id == acme.id
    assert refused.status_code == 403


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param(
            {"redirect_uris": "http://app.example/cb"},
            "redirectUris[0]: http is only for localhost, 127.0.0.1 and [::1]; "
            "other hosts need https.",
            id="a rule of redirect URIs",
        ),
        pytest.param(
            {"name": "  "}, "name: the name of an app has 1 to 100 characters.", id="name"
        ),
        pytest.param(
            {"client_uri": "javascript:alert(1)"},
            "clientUri: the address of a page begins with https://.",
            id="site",
        ),
        pytest.param({"scope": "fly"}, "scopes[0] must be one of", id="scope"),
    ],
)
async def test_what_breaks_a_rule_is_told_and_the_fields_are_kept(
    client: httpx2.AsyncClient, database: Database, fields: dict[str, str], sentence: str
) -> None:
    await signed_in(client, database)

    page = await create(client, **fields)

    assert page.status_code == 400
    assert sentence in text_of(page)
    kept = fields.get("redirect_uris") or fields.get("client_uri") or ""
    assert kept in unescape(page.text)
    assert "You have registered none yet." in text_of(await client.get(PAGE))


async def test_an_app_is_changed_as_the_form_says(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, owner="ada", client_uri="https://app.example")
    await signed_in(client, database)
    path = f"{PAGE}/loom"

    response = await send(
        client, path, path, name="Loom 2", redirect_uris="myapp://cb", scope="openid"
    )

    assert (response.status_code, response.headers["location"]) == (303, path)
    app = await found(database, "loom")
    assert (app.name, app.redirect_uris, app.client_uri) == ("Loom 2", ("myapp://cb",), None)
    assert app.scopes == {Scope.openid}


async def test_a_change_that_breaks_a_rule_changes_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    before = await an_app(database, owner="ada")
    await signed_in(client, database)
    path = f"{PAGE}/loom"

    page = await send(client, path, path, name="Loom 2", redirect_uris="https://a.example/#x")

    assert page.status_code == 400
    assert "redirectUris[0]: a redirect URI has no fragment (#)." in text_of(page)
    assert 'value="Loom 2"' in page.text
    assert await found(database, "loom") == before


async def test_a_secret_is_shown_once(client: httpx2.AsyncClient, database: Database) -> None:
    await an_app(database, owner="ada")
    await signed_in(client, database)
    path = f"{PAGE}/loom"

    page = await send(client, path, f"{path}/secrets")
    later = await client.get(path)

    [value] = re.findall(r'id="new-secret">([^<]+)</code>', page.text)
    assert page.headers["cache-control"] == "no-store"
    assert value not in later.text
    assert "Replace the secret" in later.text
    assert (await found(database, "loom")).confidential


async def test_a_secret_is_replaced_and_deleted(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, owner="ada")
    await signed_in(client, database)
    path = f"{PAGE}/loom"
    await send(client, path, f"{path}/secrets")

    replaced = await send(client, path, f"{path}/secrets")
    actions = re.findall(r'action="([^"]+/secrets/\w+/delete)"', replaced.text)
    deleted = [await send(client, path, action) for action in actions]

    assert text_of(replaced).count("replaced, works until") == 1
    assert [response.status_code for response in deleted] == [303, 303]
    assert not (await found(database, "loom")).confidential


async def upload(client: httpx2.AsyncClient, content: bytes, **fields: str) -> httpx2.Response:
    path = f"{PAGE}/loom"
    hidden = hidden_fields(await client.get(path), f"{path}/logo")
    return await client.post(
        f"{path}/logo", data=hidden | fields, files={"logo": ("logo.png", content)}
    )


async def test_a_logo_is_uploaded_and_removed(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, owner="ada")
    await signed_in(client, database)
    path = f"{PAGE}/loom"

    uploaded = await upload(client, PNG)
    shown = await client.get(f"/oauth/logos/{app.id}")
    removed = await send(client, path, f"{path}/logo/delete")

    assert (uploaded.status_code, uploaded.headers["location"]) == (303, path)
    assert (shown.headers["content-type"], shown.content) == ("image/png", PNG)
    assert removed.status_code == 303
    assert (await client.get(f"/oauth/logos/{app.id}")).status_code == 404


@pytest.mark.parametrize(
    ("content", "fields", "status"),
    [
        pytest.param(b"<svg/>", {}, 400, id="no picture"),
        pytest.param(PNG + bytes(262_144), {}, 413, id="too large"),
        pytest.param(PNG, {"form_token": "0" * 64}, 403, id="without the token of the form"),
    ],
)
async def test_what_is_no_logo_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    content: bytes,
    fields: dict[str, str],
    status: int,
) -> None:
    app = await an_app(database, owner="ada")
    await signed_in(client, database)

    response = await upload(client, content, **fields)

    assert response.status_code == status
    assert response.headers["content-type"].startswith("text/html")
    assert (await client.get(f"/oauth/logos/{app.id}")).status_code == 404


@pytest.mark.parametrize(
    "body", [pytest.param({}, id="no file"), pytest.param({"logo": "text"}, id="text")]
)
async def test_a_form_without_a_file_is_refused(
    client: httpx2.AsyncClient, database: Database, body: dict[str, str]
) -> None:
    await an_app(database, owner="ada")
    await signed_in(client, database)
    path = f"{PAGE}/loom"

    response = await send(client, path, f"{path}/logo", **body)

    assert response.status_code == 400


async def test_a_deleted_app_is_gone(client: httpx2.AsyncClient, database: Database) -> None:
    await an_app(database, owner="ada")
    await signed_in(client, database)
    path = f"{PAGE}/loom"

    response = await send(client, path, f"{path}/delete", sure="on")

    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    "action", ["", "/secrets", "/secrets/" + "a" * 24 + "/delete", "/logo/delete", "/delete"]
)
@pytest.mark.parametrize("whose", ["olga", "ada"])
async def test_nobody_changes_an_app_of_others_or_through_another_site(
    client: httpx2.AsyncClient, database: Database, action: str, whose: str
) -> None:
    before = await an_app(database, owner=whose)
    await signed_in(client, database)
    token = hidden_fields(await client.get(f"{PAGE}/new"), PAGE)["form_token"]
    of_other_site = {"Sec-Fetch-Site": "cross-site"} if whose == "ada" else {}

    response = await client.post(
        f"{PAGE}/loom{action}",
        data={"form_token": token, "name": "Mine"},
        headers=of_other_site,
    )

    assert response.status_code == (403 if whose == "ada" else 404)
    assert await found(database, "loom") == before


async def test_an_app_of_others_is_not_shown(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, owner="olga")
    await signed_in(client, database)

    assert (await client.get(f"{PAGE}/loom")).status_code == 404
    assert "loom" not in (await client.get(PAGE)).text


async def test_a_name_becomes_no_part_of_the_page(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_app(database, owner="ada", name="<script>alert(1)</script>")
    await signed_in(client, database)

    pages = [await client.get(PAGE), await client.get(f"{PAGE}/loom")]

    assert ["<script>alert" in page.text for page in pages] == [False, False]


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/new", f"{PAGE}/loom"])
async def test_who_is_not_signed_in_signs_in_first(client: httpx2.AsyncClient, path: str) -> None:
    assert (await client.get(path)).headers["location"] == f"/login?next={path}"
