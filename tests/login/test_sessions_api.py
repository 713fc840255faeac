"""Sessions: how long they last, what ends them, and where their owner sees them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.users import service as accounts
from hublet.app import with_edge
from hublet.core import clock
from hublet.core.database import Database
from hublet.login import sessions
from hublet.login.forms import form_token
from login.login_pages import a_person, form_token_of, log_in, notices_in
from people import Headers, sign_in

PAGE = "/settings/sessions"
API = "/api/settings/sessions"
STALE = "The form does not belong to this session any more. Open the page again and repeat it."


@pytest.fixture
async def phone(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """A second browser."""
    transport = httpx2.ASGITransport(app=with_edge(app))
    headers = {"User-Agent": "Mozilla/5.0 (Android 15; Mobile) Gecko/132.0 Firefox/132.0"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://hub.test", headers=headers
    ) as client:
        yield client


async def is_signed_in(client: httpx2.AsyncClient) -> bool:
    return (await client.get(PAGE)).status_code == 200


async def rows_of(database: Database) -> list[dict[str, Any]]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT id, digest, user_id, authenticated_at, last_used_at FROM sessions ORDER BY id"
        )
    names = ("id", "digest", "user_id", "authenticated_at", "last_used_at")
    return [{name: row[name] for name in names} for row in rows]


async def test_only_a_digest_of_the_cookie_is_kept(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)

    [row] = await rows_of(database)

    value = client.cookies["hublet_session"]
    assert row["digest"] == database.hub.keys.digest("session", value).hex()


@pytest.mark.parametrize("value", ["", "x", "0" * 43, "ä", '"'])
async def test_a_made_up_cookie_is_nobody(
    client: httpx2.AsyncClient, database: Database, value: str
) -> None:
    cookie = f"hublet_session={value}".encode()

    response = await client.get(PAGE, headers={b"Cookie": cookie})

    assert (response.status_code, response.headers["location"]) == (
        303,
        "/login?next=/settings/sessions",
    )


async def test_no_cookie_opens_the_api(client: httpx2.AsyncClient, database: Database) -> None:
    await a_person(database)
    await log_in(client)

    assert await is_signed_in(client)
    for path in (API, "/api/whoami-v2", "/api/settings/profile"):
        assert (await client.get(path)).status_code == 401
    assert (await client.delete(API)).status_code == 401
    assert await is_signed_in(client)


async def test_no_token_opens_a_page(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await client.get(PAGE, headers=ada)

    assert response.status_code == 303


async def test_a_session_ends_after_thirty_days_however_much_it_is_used(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)

    seen = []
    for _ in range(3):
        clock.move(timedelta(days=9, hours=23))
        seen.append(await is_signed_in(client))
    clock.move(timedelta(hours=4))

    assert seen == [True, True, True]
    assert not await is_signed_in(client)


async def test_a_session_that_is_not_used_ends_after_a_fortnight(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)

    clock.move(timedelta(days=13, hours=23))
    still = await is_signed_in(client)
    clock.move(timedelta(days=14, minutes=1))

    assert still
    assert not await is_signed_in(client)


async def test_its_use_is_noted_once_in_five_minutes(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    [begun] = await rows_of(database)

    clock.move(timedelta(minutes=4))
    await client.get(PAGE)
    [early] = await rows_of(database)
    clock.move(timedelta(minutes=2))
    await client.get(PAGE)
    [late] = await rows_of(database)

    assert early["last_used_at"] == begun["last_used_at"]
    assert late["last_used_at"] >= begun["last_used_at"] + 360_000_000


async def test_a_disabled_user_is_out_at_once_and_stays_out(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_person(database)
    await log_in(client)
    async with database.transaction() as conn:
        user = await accounts.disable_user(conn, user)
    disabled = await is_signed_in(client)

    async with database.transaction() as conn:
        await accounts.enable_user(conn, user)

    assert not disabled
    assert not await is_signed_in(client)


async def test_a_session_of_a_disabled_user_is_dead_even_if_it_is_still_there(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_person(database)
    await log_in(client)
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1 WHERE id = $1", user.id)

    assert not await is_signed_in(client)


async def test_signing_in_again_renews_the_same_session(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    old = client.cookies["hublet_session"]
    [before] = await rows_of(database)
    clock.move(timedelta(hours=1))

    await log_in(client)

    [after] = await rows_of(database)
    assert after["id"] == before["id"]
    assert after["authenticated_at"] >= before["authenticated_at"] + 3_600_000_000
    assert client.cookies["hublet_session"] != old
    client.cookies.clear()
    assert (await client.get(PAGE, headers={"Cookie": f"hublet_session={old}"})).status_code == 303


async def test_signing_in_as_somebody_else_ends_the_first_session(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    grace = await a_person(database, "grace")
    await log_in(client)
    old = client.cookies["hublet_session"]

    await log_in(client, "grace")

    [row] = await rows_of(database)
    assert row["user_id"] == grace.id
    client.cookies.clear()
    assert (await client.get(PAGE, headers={"Cookie": f"hublet_session={old}"})).status_code == 303


async def test_expired_sessions_are_cleared_away_by_the_next_login(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    [old] = await rows_of(database)
    clock.move(timedelta(days=31))

    await log_in(phone)

    [row] = await rows_of(database)
    assert row["id"] != old["id"]


async def test_the_page_shows_every_browser_and_which_is_this(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await a_person(database, "grace")
    await log_in(client)
    await log_in(phone)

    page = (await phone.get(PAGE)).text

    assert page.count("<li>\n<div>") == 2
    assert page.count("this browser") == 1
    assert page.index("Firefox on Android") < page.index("this browser") < page.index("httpx")
    assert page.count('action="/settings/sessions/') == 2


async def test_another_browser_can_be_signed_out(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(phone)
    await log_in(client)
    [of_phone, _] = await rows_of(database)
    path = f"{PAGE}/{of_phone['id']}/end"
    token = form_token_of(await client.get(PAGE), path)

    response = await client.post(path, data={"form_token": token})

    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    assert not await is_signed_in(phone)
    assert await is_signed_in(client)


async def test_all_other_browsers_can_be_signed_out_together(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database, app: FastAPI
) -> None:
    await a_person(database)
    await a_person(database, "grace")
    await log_in(phone)
    await log_in(client)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=with_edge(app)), base_url="http://hub.test"
    ) as of_grace:
        await log_in(of_grace, "grace")
        token = form_token_of(await client.get(PAGE), f"{PAGE}/end-others")

        response = await client.post(f"{PAGE}/end-others", data={"form_token": token})

        assert (response.status_code, response.headers["location"]) == (303, PAGE)
        signed_in = [await is_signed_in(each) for each in (client, phone, of_grace)]
    assert signed_in == [True, False, True]


async def test_nobody_ends_the_sessions_of_others(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await a_person(database, "grace")
    await log_in(phone, "grace")
    [of_grace] = await rows_of(database)
    await log_in(client)
    headers = await sign_in(database, "ada")
    async with database.read() as conn:
        [session] = await sessions.list_of(conn, (await a_person(database)).id)
    token = form_token(database.hub, session, PAGE)

    on_page = await client.post(f"{PAGE}/{of_grace['id']}/end", data={"form_token": token})
    in_api = await client.delete(f"{API}/{of_grace['id']}", headers=headers)

    assert on_page.status_code == in_api.status_code == 404
    assert notices_in(on_page) == [f"There is no session {of_grace['id']}."]
    assert in_api.json() == {"error": f"There is no session {of_grace['id']}."}
    assert await is_signed_in(phone)


@pytest.mark.parametrize("path", [f"{PAGE}/{'a' * 24}/end", f"{PAGE}/end-others", "/logout"])
async def test_a_form_without_its_token_changes_nothing(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database, path: str
) -> None:
    await a_person(database)
    await log_in(client)
    await log_in(phone)

    response = await client.post(path)

    assert response.status_code == 403
    assert notices_in(response) == [STALE]
    assert [await is_signed_in(client), await is_signed_in(phone)] == [True, True]


async def test_the_api_lists_sessions_the_last_used_first(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await a_person(database, "grace")
    await log_in(client, "grace")
    client.cookies.clear()
    await log_in(phone)
    clock.move(timedelta(minutes=1))
    await log_in(client)
    headers = await sign_in(database, "ada")

    response = await client.get(API, headers=headers)

    assert response.status_code == 200
    [last, first] = response.json()
    agent = "Mozilla/5.0 (Android 15; Mobile) Gecko/132.0 Firefox/132.0"
    times = ("createdAt", "authenticatedAt", "lastUsedAt", "expiresAt")
    assert first == {
        "id": first["id"],
        "address": "127.0.0.1",
        "agent": agent,
        **{name: first[name] for name in times},
    }
    assert last["agent"].startswith("python-httpx")
    assert last["lastUsedAt"] > first["lastUsedAt"] == first["createdAt"]


async def test_the_api_ends_one_session_or_all(
    client: httpx2.AsyncClient, phone: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    await log_in(phone)
    headers = await sign_in(database, "ada")
    [of_client, _] = await rows_of(database)

    one = await client.delete(f"{API}/{of_client['id']}", headers=headers)
    after_one = [await is_signed_in(client), await is_signed_in(phone)]
    rest = await client.delete(API, headers=headers)

    assert (one.status_code, one.json()) == (200, {})
    assert after_one == [False, True]
    assert (rest.status_code, rest.json()) == (200, {})
    assert not await is_signed_in(phone)


async def test_a_reading_token_does_not_reach_sessions(
    client: httpx2.AsyncClient, database: Database
) -> None:
    headers = await sign_in(database, "ada", scopes=["read-repos"])

    codes = [
        (await client.request(method, path, headers=headers)).status_code
        for method, path in [("GET", API), ("DELETE", API), ("DELETE", f"{API}/{'a' * 24}")]
    ]

    assert codes == [403, 403, 403]
