"""Setting another password, on the page and elsewhere."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.passwords import verify_password
from hublet.accounts.users import service as accounts
from hublet.app import with_edge
from hublet.core.database import Database
from login.login_pages import PASSWORD, a_person, form_token_of, log_in, notices_in
from people import Headers, sign_in

PAGE = "/settings/password"
NEW = "another horse battery"


@pytest.fixture
async def other(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """A second browser of ada's, signed in."""
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        yield client


async def change(client: httpx2.AsyncClient, **fields: str) -> httpx2.Response:
    """Send the form; name only the fields the test is about."""
    given = {"current": PASSWORD, "new": NEW, "repeated": fields.get("new", NEW)}
    token = form_token_of(await client.get(PAGE), PAGE)
    return await client.post(PAGE, data={"form_token": token} | given | fields)


async def is_signed_in(client: httpx2.AsyncClient) -> bool:
    return (await client.get(PAGE)).status_code == 200


async def test_a_new_password_signs_out_every_other_browser(
    client: httpx2.AsyncClient, other: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    await log_in(other)
    old = client.cookies["hublet_session"]

    response = await change(client)

    assert (response.status_code, response.headers["location"]) == (303, f"{PAGE}?changed=1")
    assert client.cookies["hublet_session"] != old
    assert notices_in(await client.get(f"{PAGE}?changed=1")) == [
        "The password is changed. All other browsers are signed out."
    ]
    assert not await is_signed_in(other)
    assert (await log_in(other, password=PASSWORD)).status_code == 403
    assert (await log_in(other, password=NEW)).status_code == 303


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        pytest.param({"current": "wrong"}, 403, "The present password is wrong.", id="a guess"),
        pytest.param(
            {"repeated": NEW + "x"},
            400,
            "The new password and its repetition differ.",
            id="a slip of the finger",
        ),
        pytest.param(
            {"new": "short"}, 400, "A password has at least 8 characters.", id="too short"
        ),
        pytest.param(
            {"new": "x" * 257}, 400, "A password has at most 256 characters.", id="too long"
        ),
    ],
)
async def test_a_refused_change_says_why_and_changes_nothing(
    client: httpx2.AsyncClient,
    other: httpx2.AsyncClient,
    database: Database,
    fields: dict[str, str],
    status: int,
    sentence: str,
) -> None:
    await a_person(database)
    await log_in(client)
    await log_in(other)

    response = await change(client, **fields)

    assert response.status_code == status
    assert notices_in(response) == [sentence]
    assert await is_signed_in(client)
    assert await is_signed_in(other)
    assert (await log_in(other)).status_code == 303


async def test_the_form_needs_its_token(client: httpx2.AsyncClient, database: Database) -> None:
    await a_person(database)
    await log_in(client)

    response = await change(client, form_token="0" * 64)

    assert response.status_code == 403
    assert (await log_in(client)).status_code == 303


async def test_who_is_not_signed_in_is_sent_to_the_login_and_back_to_the_form(
    client: httpx2.AsyncClient,
) -> None:
    shown = await client.get(PAGE)
    sent = await client.post(PAGE, headers={"Referer": f"http://hub.test{PAGE}?changed=1"})
    bare = await client.post(PAGE)

    places = [each.headers["location"] for each in (shown, sent, bare)]
    assert places == [
        "/login?next=/settings/password",
        "/login?next=/settings/password%3Fchanged%3D1",
        "/login?next=/settings/sessions",
    ]


async def test_a_password_set_through_the_api_signs_out_every_browser(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    headers = await sign_in(database, "ada")
    body = {"currentPassword": PASSWORD, "newPassword": NEW}

    response = await client.put("/api/settings/password", headers=headers, json=body)

    assert response.status_code == 200
    assert not await is_signed_in(client)


async def test_a_password_set_by_an_administrator_signs_out_every_browser(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await a_person(database)
    await log_in(client)

    await client.put("/api/admin/users/ada/password", headers=admin, json={"password": NEW})

    assert not await is_signed_in(client)


async def test_a_login_that_is_overtaken_by_a_new_password_fails(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = await a_person(database)

    async def verify_slowly(hashed: str | None, text: str) -> bool:
        fits = await verify_password(hashed, text)
        async with database.transaction() as conn:
            await accounts.set_password(conn, user, NEW)
        return fits

    monkeypatch.setattr("hublet.login.service.verify_password", verify_slowly)

    assert (await log_in(client)).status_code == 403
