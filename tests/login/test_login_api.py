"""Signing in by password, and out again."""

import asyncio
import re

import httpx2
import pytest
from argon2 import PasswordHasher

from hublet.accounts.passwords import needs_rehash, verify_password
from hublet.accounts.users import service as accounts
from hublet.core.config import Settings
from hublet.core.database import Database
from login.login_pages import PASSWORD, a_person, form_token_of, log_in, notices_in
from login.secure_hub import secure_hub

REFUSED = (
    "The name or the password is wrong. After too many wrong ones, the right one is refused for a "
    "while, too."
)
START = "/settings/sessions"


async def is_signed_in(client: httpx2.AsyncClient) -> bool:
    return (await client.get(START)).status_code == 200


async def test_the_page_asks_for_name_and_password(client: httpx2.AsyncClient) -> None:
    response = await client.get("/login")

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r'<input [^>]*name="(\w+)"', response.text) == [
        "q",
        "next",
        "name",
        "password",
    ]
    assert "set-cookie" not in response.headers


async def test_the_page_may_not_be_framed_kept_or_led_elsewhere(client: httpx2.AsyncClient) -> None:
    headers = (await client.get("/login")).headers

    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["content-security-policy"] == (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "media-src 'self'; connect-src 'self'; frame-src 'none'; base-uri 'none'; "
        "frame-ancestors 'none'; form-action 'self'"
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ada", id="the name"),
        pytest.param("ADA", id="the name in capitals"),
        pytest.param(" ada ", id="blanks around it"),
        pytest.param("ada@example.com", id="the e-mail address"),
        pytest.param("Ada@Example.com", id="the address in other letters"),
    ],
)
async def test_name_or_address_and_password_sign_in(
    client: httpx2.AsyncClient, database: Database, name: str
) -> None:
    await a_person(database, email="ada@example.com")

    response = await log_in(client, name)

    assert response.status_code == 303
    assert response.headers["location"] == START
    assert await is_signed_in(client)


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)

    cookie = (await log_in(client)).headers["set-cookie"]

    assert re.fullmatch(
        r"hublet_session=[A-Za-z0-9]{43}; HttpOnly; Max-Age=2592000; Path=/; SameSite=lax", cookie
    )


async def test_over_tls_the_cookie_is_bound_to_the_host(settings: Settings) -> None:
    async with secure_hub(settings) as hub:
        await a_person(hub.database)
        cookie = (await log_in(hub.client)).headers["set-cookie"]
        signed_in = await is_signed_in(hub.client)

    assert re.fullmatch(
        r"__Host-hublet_session=\w{43}; HttpOnly; Max-Age=2592000; Path=/; SameSite=lax; Secure",
        cookie,
    )
    assert signed_in


async def a_disabled_person(database: Database) -> None:
    user = await a_person(database, "grace")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)


async def somebody_without_password(database: Database) -> None:
    async with database.transaction() as conn:
        await accounts.create_user(conn, "linus")


async def an_unverified_address(database: Database) -> None:
    user = await a_person(database)
    async with database.transaction() as conn:
        await accounts.add_email(conn, user, "new@example.com", verified=False)


@pytest.mark.parametrize(
    ("name", "password"),
    [
        pytest.param("ada", "wrong horse battery", id="a wrong password"),
        pytest.param("ada", "", id="no password"),
        pytest.param("ada", PASSWORD + " ", id="a password with a blank more"),
        pytest.param("ada", "x" * 100_000, id="a password nobody can have"),
        pytest.param("nobody", PASSWORD, id="an unknown name"),
        pytest.param("nobody@example.com", PASSWORD, id="an unknown address"),
        pytest.param("", PASSWORD, id="no name"),
        pytest.param("grace", PASSWORD, id="a disabled account"),
        pytest.param("linus", PASSWORD, id="an account without a password"),
        pytest.param("new@example.com", PASSWORD, id="an address that is not verified"),
    ],
)
async def test_every_failure_looks_the_same(
    client: httpx2.AsyncClient, database: Database, name: str, password: str
) -> None:
    await a_disabled_person(database)
    await somebody_without_password(database)
    await an_unverified_address(database)

    response = await log_in(client, name, password)
    unknown = await log_in(client, "unheard-of", "x")

    assert response.status_code == unknown.status_code == 403
    assert notices_in(response) == [REFUSED]
    assert "set-cookie" not in response.headers
    assert name == "" or response.text == unknown.text.replace("unheard-of", name)


@pytest.mark.parametrize("name", ["ada", "nobody", "nobody@example.com", "linus"])
async def test_an_unknown_name_costs_as_much_as_a_wrong_password(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await a_person(database)
    await somebody_without_password(database)
    checked: list[str] = []

    async def note(hashed: str | None, text: str) -> bool:
        checked.append(text)
        return await verify_password(hashed, text)

    monkeypatch.setattr("hublet.login.service.verify_password", note)
    await log_in(client, name, "wrong")

    assert checked == ["wrong"]


async def test_what_was_typed_is_shown_again_but_never_the_password(
    client: httpx2.AsyncClient, database: Database
) -> None:
    response = await log_in(client, 'ada"><b>', "my secret", next="/device")

    assert "my secret" not in response.text
    assert 'value="ada&#34;&gt;&lt;b&gt;"' in response.text
    assert 'name="next" value="/device"' in response.text


async def test_the_login_leads_where_the_person_wanted_to_go(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)

    sent_away = await client.get("/settings/password?changed=1")
    response = await log_in(client, next="/settings/password?changed=1")

    assert sent_away.status_code == 303
    assert sent_away.headers["location"] == "/login?next=/settings/password%3Fchanged%3D1"
    assert response.headers["location"] == "/settings/password?changed=1"


async def test_towards_an_app_a_page_goes_on_by_itself(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)

    response = await log_in(client, next="/oauth/authorize?client_id=a&state=b")

    assert response.status_code == 200
    assert (
        '<meta http-equiv="refresh" content="0; url=/oauth/authorize?client_id=a&amp;state=b">'
        in response.text
    )
    assert "hublet_session=" in response.headers["set-cookie"]


@pytest.mark.parametrize("next_path", ["//evil.example", "/\\evil.example", "https://evil.example"])
async def test_the_login_never_leads_to_another_host(
    client: httpx2.AsyncClient, database: Database, next_path: str
) -> None:
    await a_person(database)

    page = await client.get("/login", params={"next": next_path})
    response = await log_in(client, next=next_path)
    again = await client.get("/login", params={"next": next_path})

    assert f'name="next" value="{START}"' in page.text
    assert response.headers["location"] == START
    assert (again.status_code, again.headers["location"]) == (303, START)


async def test_who_is_signed_in_is_not_asked_unless_the_address_says_so(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)

    passed = await client.get("/login?next=/device")
    asked = await client.get("/login?next=/device&again=1")

    assert (passed.status_code, passed.headers["location"]) == (303, "/device")
    assert asked.status_code == 200
    assert "<h1>Sign in again</h1>" in asked.text
    assert 'name="next" value="/device"' in asked.text


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [("/settings", "/settings/profile"), ("/.well-known/change-password", "/settings/password")],
)
async def test_short_addresses_lead_to_the_settings(
    client: httpx2.AsyncClient, path: str, leads_to: str
) -> None:
    response = await client.get(path)

    assert (response.status_code, response.headers["location"]) == (303, leads_to)


async def test_many_log_ins_of_one_browser_at_once_leave_one_session(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_person(database)
    await log_in(client)
    under_way: list[str] = []
    all_came = asyncio.Event()

    async def verify_together(hashed: str, password: str) -> bool:
        """Let nobody go on before all four came: they then have the same session."""
        under_way.append(password)
        if len(under_way) == 4:
            all_came.set()
        await all_came.wait()
        return await verify_password(hashed, password)

    monkeypatch.setattr("hublet.login.service.verify_password", verify_together)
    responses = await asyncio.gather(*(log_in(client) for _ in range(4)))

    assert [each.status_code for each in responses] == [303] * 4
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM sessions") == 1


async def test_a_form_of_another_site_signs_nobody_in(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)

    response = await client.post(
        "/login",
        data={"name": "ada", "password": PASSWORD},
        headers={"Origin": "https://evil.example", "Accept": "text/html"},
    )

    assert response.status_code == 403
    assert notices_in(response) == [
        "The form was sent from another site. Open the page here and try again."
    ]
    assert not await is_signed_in(client)


async def test_a_password_hash_of_old_is_made_anew(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_person(database)
    old = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET password_hash = $1 WHERE id = $2", old, user.id)

    await log_in(client)

    async with database.read() as reading:
        stored = await reading.fetch_value("SELECT password_hash FROM users WHERE id = $1", user.id)
    assert stored != old
    assert not needs_rehash(stored)
    assert (await log_in(client)).status_code == 303


async def test_signing_out_ends_the_session_for_good(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database)
    await log_in(client)
    value = client.cookies["hublet_session"]
    page = await client.get(START)

    response = await client.post("/logout", data={"form_token": form_token_of(page, "/logout")})

    assert (response.status_code, response.headers["location"]) == (303, "/login")
    assert "hublet_session" not in client.cookies
    client.cookies.set("hublet_session", value)
    assert not await is_signed_in(client)


async def test_signing_out_needs_the_form(client: httpx2.AsyncClient, database: Database) -> None:
    await a_person(database)
    await log_in(client)

    asked = await client.get("/logout")
    forged = await client.post("/logout", data={"form_token": "0" * 64})
    bare = await client.post("/logout")

    assert asked.status_code == 200
    assert "Sign out ada" in asked.text
    assert forged.status_code == bare.status_code == 403
    assert await is_signed_in(client)


async def test_signing_out_twice_is_no_error(client: httpx2.AsyncClient) -> None:
    asked = await client.get("/logout")
    response = await client.post("/logout")

    assert (asked.status_code, asked.headers["location"]) == (303, "/login")
    assert (response.status_code, response.headers["location"]) == (303, "/login")


async def test_a_form_with_a_file_or_a_nul_is_refused(client: httpx2.AsyncClient) -> None:
    browser = {"Accept": "text/html"}
    with_file = await client.post("/login", files={"name": b"ada"}, headers=browser)
    with_nul = await client.post("/login", data={"name": "a\x00", "password": "b"}, headers=browser)

    for response in (with_file, with_nul):
        assert response.status_code == 400
        assert notices_in(response) == [
            "The body must be a form of at most 100 fields, without files and NUL characters."
        ]
