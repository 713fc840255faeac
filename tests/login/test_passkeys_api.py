"""Passkeys: added, used, renamed and removed, and what is refused."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts.users import service as accounts
from hublet.core import clock
from hublet.core.config import Settings
from login.authenticators import PRESENT, Authenticator, bytes_of
from login.login_pages import a_person, form_token_of, log_in, notices_in
from login.secure_hub import SecureHub, secure_hub

PAGE = "/settings/passkeys"
REFUSED = "The passkey was not accepted. Try again, or use your password."


@pytest.fixture
async def hub(settings: Settings) -> AsyncIterator[SecureHub]:
    """A hub at which ada is signed in."""
    async with secure_hub(settings) as hub:
        await a_person(hub.database)
        await log_in(hub.client)
        yield hub


async def token_of(hub: SecureHub) -> str:
    return form_token_of(await hub.client.get(PAGE), PAGE)


async def asked_to_add(hub: SecureHub) -> dict[str, Any]:
    response = await hub.client.post(f"{PAGE}/options", data={"form_token": await token_of(hub)})
    assert response.status_code == 200, response.text
    options: dict[str, Any] = response.json()
    return options


async def send_added(hub: SecureHub, answer: str, name: str = "Phone") -> httpx2.Response:
    fields = {"form_token": await token_of(hub), "name": name, "answer": answer}
    return await hub.client.post(PAGE, data=fields)


async def a_passkey(hub: SecureHub, name: str = "Phone") -> Authenticator:
    """Add a passkey to ada's account; return the device that holds it."""
    device = Authenticator()
    response = await send_added(hub, device.create(await asked_to_add(hub)), name)
    assert response.status_code == 303, response.text
    return device


async def asked_to_sign_in(hub: SecureHub) -> dict[str, Any]:
    response = await hub.client.post("/login/passkey/options")
    assert response.status_code == 200, response.text
    options: dict[str, Any] = response.json()
    return options


async def sign_in_with(hub: SecureHub, device: Authenticator, **fields: str) -> httpx2.Response:
    """Sign in in a browser that knows nobody yet."""
    hub.client.cookies.clear()
    answer = device.get(await asked_to_sign_in(hub))
    return await hub.client.post("/login/passkey", data={"answer": answer} | fields)


async def is_signed_in(hub: SecureHub) -> bool:
    return (await hub.client.get("/settings/sessions")).status_code == 200


def names_in(page: str) -> list[str]:
    return re.findall(r"<strong>([^<]+)</strong>", page)


async def test_a_browser_is_asked_for_a_passkey_that_finds_itself(hub: SecureHub) -> None:
    options = await asked_to_add(hub)

    ada = await a_person(hub.database)
    assert options == {
        "rp": {"name": "Hublet", "id": "hub.test"},
        "user": {"id": options["user"]["id"], "name": "ada", "displayName": "ada"},
        "challenge": options["challenge"],
        "pubKeyCredParams": options["pubKeyCredParams"],
        "timeout": 300000,
        "excludeCredentials": [],
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
    }
    assert bytes_of(options["user"]["id"]).decode() == ada.id
    assert len(bytes_of(options["challenge"])) == 32


async def test_a_new_passkey_is_listed_and_not_made_twice_on_one_device(hub: SecureHub) -> None:
    device = await a_passkey(hub, "  My phone ")

    page = await hub.client.get(PAGE)
    options = await asked_to_add(hub)

    assert names_in(page.text) == ["My phone"]
    assert "not used yet" in page.text
    [known] = options["excludeCredentials"]
    assert bytes_of(known["id"]) == device.credential_id


async def test_a_passkey_signs_in_whoever_owns_it(hub: SecureHub) -> None:
    device = await a_passkey(hub)

    response = await sign_in_with(hub, device, next="/settings/passkeys")

    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    page = (await hub.client.get(PAGE)).text
    assert "Menu of ada" in page
    assert "last used" in page


async def test_a_passkey_signs_in_again_and_again(hub: SecureHub) -> None:
    device = await a_passkey(hub)

    codes = [(await sign_in_with(hub, device)).status_code for _ in range(3)]

    assert codes == [303, 303, 303]


async def test_a_device_that_does_not_count_signs_in_again_and_again(hub: SecureHub) -> None:
    device = await a_passkey(hub)

    codes = []
    for _ in range(2):
        device.count = -1
        codes.append((await sign_in_with(hub, device)).status_code)

    assert codes == [303, 303]


async def test_the_passkey_never_leads_to_another_host(hub: SecureHub) -> None:
    device = await a_passkey(hub)

    response = await sign_in_with(hub, device, next="//evil.example")

    assert response.headers["location"] == "/settings/sessions"


async def test_a_passkey_renews_the_session_of_its_owner(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    old = hub.client.cookies["__Host-hublet_session"]

    answer = device.get(await asked_to_sign_in(hub))
    await hub.client.post("/login/passkey", data={"answer": answer})

    async with hub.database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM sessions") == 1
    assert hub.client.cookies["__Host-hublet_session"] != old
    assert await is_signed_in(hub)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"origin": "https://evil.example"}, id="for another origin"),
        pytest.param({"origin": "https://hub.test:8443"}, id="for another port"),
        pytest.param({"host": "evil.example"}, id="for another host"),
        pytest.param({"flags": PRESENT}, id="without having checked who holds the device"),
        pytest.param({"flags": 0}, id="without anybody there"),
        pytest.param({"user_handle": b"f" * 24}, id="for another user"),
        pytest.param({"user_handle": b""}, id="without saying for whom"),
        pytest.param({"key": Authenticator().key}, id="with another key"),
        pytest.param({"credential_id": b"x" * 16}, id="as an unknown passkey"),
    ],
)
async def test_an_answer_that_does_not_hold_signs_nobody_in(
    hub: SecureHub, changes: dict[str, Any]
) -> None:
    device = await a_passkey(hub)

    response = await sign_in_with(hub, replace(device, **changes))

    assert response.status_code == 403
    assert notices_in(response) == [REFUSED]
    assert not await is_signed_in(hub)


async def test_a_count_that_goes_back_is_a_copied_key(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    copy = replace(device)
    await sign_in_with(hub, device)
    await sign_in_with(hub, device)

    response = await sign_in_with(hub, copy)

    assert response.status_code == 403
    assert notices_in(response) == [REFUSED]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="an empty object"),
        pytest.param('{"id": 1}', id="a number as id"),
        pytest.param('{"id": "\\u0000"}', id="NUL"),
        pytest.param('{"id": "YQ", "rawId": "YQ", "type": "public-key"}', id="half an answer"),
    ],
)
async def test_nonsense_is_refused(hub: SecureHub, answer: str) -> None:
    await asked_to_sign_in(hub)
    signed_in = await hub.client.post("/login/passkey", data={"answer": answer})
    await asked_to_add(hub)
    added = await send_added(hub, answer)

    assert (signed_in.status_code, notices_in(signed_in)) == (403, [REFUSED])
    assert added.status_code == 400
    assert notices_in(added) == ["The passkey was not added: the browser's answer does not hold."]


async def test_half_an_answer_of_a_known_passkey_is_refused(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    answer = json.loads(device.get(await asked_to_sign_in(hub)))
    for missing in ("clientDataJSON", "authenticatorData", "signature", "userHandle"):
        response = {k: v for k, v in answer["response"].items() if k != missing}
        body = json.dumps(answer | {"response": response})
        refused = await hub.client.post("/login/passkey", data={"answer": body})
        assert (refused.status_code, notices_in(refused)) == (403, [REFUSED])


async def test_a_challenge_is_answered_once(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    hub.client.cookies.clear()
    answer = device.get(await asked_to_sign_in(hub))
    challenge = hub.client.cookies["__Host-hublet_challenge"]

    first = await hub.client.post("/login/passkey", data={"answer": answer})
    hub.client.cookies.clear()
    # Somebody who saw both has a device of no count, so that only the challenge is in the way.
    async with hub.database.transaction() as conn:
        await conn.execute("UPDATE passkeys SET sign_count = 0")
    cookie = {"Cookie": f"__Host-hublet_challenge={challenge}"}
    second = await hub.client.post("/login/passkey", data={"answer": answer}, headers=cookie)

    assert first.status_code == 303
    assert (second.status_code, notices_in(second)) == (403, [REFUSED])


async def test_a_challenge_lasts_five_minutes(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    hub.client.cookies.clear()
    options = await asked_to_sign_in(hub)
    cookie = {"Cookie": f"__Host-hublet_challenge={hub.client.cookies['__Host-hublet_challenge']}"}

    clock.move(timedelta(minutes=5, seconds=1))
    response = await hub.client.post(
        "/login/passkey", data={"answer": device.get(options)}, headers=cookie
    )

    assert (response.status_code, notices_in(response)) == (403, [REFUSED])


async def test_without_the_browser_that_asked_a_challenge_is_worth_nothing(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    options = await asked_to_sign_in(hub)
    hub.client.cookies.clear()

    response = await hub.client.post("/login/passkey", data={"answer": device.get(options)})

    assert (response.status_code, notices_in(response)) == (403, [REFUSED])


async def test_a_challenge_for_adding_does_not_sign_in(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    options = await asked_to_add(hub)

    response = await hub.client.post("/login/passkey", data={"answer": device.get(options)})

    assert (response.status_code, notices_in(response)) == (403, [REFUSED])


async def test_a_challenge_for_adding_belongs_to_its_session(hub: SecureHub) -> None:
    await a_person(hub.database, "grace")
    answer = Authenticator().create(await asked_to_add(hub))
    await log_in(hub.client, "grace")

    response = await send_added(hub, answer)

    assert response.status_code == 400
    assert notices_in(response) == ["The passkey was not added: it took too long, so begin again."]


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(Authenticator(origin="https://evil.example"), id="for another origin"),
        pytest.param(Authenticator(host="evil.example"), id="for another host"),
        pytest.param(Authenticator(flags=PRESENT), id="without a check of who holds it"),
    ],
)
async def test_a_passkey_that_does_not_hold_is_not_added(
    hub: SecureHub, device: Authenticator
) -> None:
    response = await send_added(hub, device.create(await asked_to_add(hub)))

    assert response.status_code == 400
    assert notices_in(response) == [
        "The passkey was not added: the browser's answer does not hold."
    ]
    assert names_in(response.text) == []


async def test_an_answer_is_added_once(hub: SecureHub) -> None:
    answer = Authenticator().create(await asked_to_add(hub))

    await send_added(hub, answer)
    second = await send_added(hub, answer)

    assert second.status_code == 400
    assert notices_in(second) == [
        "The passkey was not added: its challenge was used before, so begin again."
    ]


async def test_nobody_adds_the_passkey_of_somebody_else(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    await a_person(hub.database, "grace")
    await log_in(hub.client, "grace")

    response = await send_added(hub, device.create(await asked_to_add(hub)))

    assert response.status_code == 400
    assert notices_in(response) == ["The passkey was not added: an account has it already."]


async def test_an_account_has_at_most_twenty(hub: SecureHub) -> None:
    for number in range(20):
        await a_passkey(hub, f"Key {number}")

    response = await send_added(hub, Authenticator().create(await asked_to_add(hub)))

    assert response.status_code == 400
    assert notices_in(response) == ["The passkey was not added: an account has at most 20."]


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "two\nlines"])
async def test_a_name_has_one_line_of_a_hundred_characters(hub: SecureHub, name: str) -> None:
    await a_passkey(hub)
    rename = await action_of(hub, "rename")
    fields = {"form_token": await token_of(hub), "name": name}

    added = await send_added(hub, Authenticator().create(await asked_to_add(hub)), name)
    renamed = await hub.client.post(rename, data=fields)

    for response in (added, renamed):
        assert response.status_code == 400
        assert notices_in(response) == [
            "The name of a passkey has 1 to 100 characters on one line."
        ]


async def action_of(hub: SecureHub, verb: str) -> str:
    [path] = re.findall(rf'action="({PAGE}/\w+/{verb})"', (await hub.client.get(PAGE)).text)
    return str(path)


async def test_a_passkey_can_be_renamed(hub: SecureHub) -> None:
    await a_passkey(hub)
    fields = {"form_token": await token_of(hub), "name": "<Old> phone"}

    response = await hub.client.post(await action_of(hub, "rename"), data=fields)

    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    assert names_in((await hub.client.get(PAGE)).text) == ["&lt;Old&gt; phone"]


async def test_a_removed_passkey_signs_in_no_more(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    fields = {"form_token": await token_of(hub)}

    response = await hub.client.post(await action_of(hub, "remove"), data=fields)

    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    assert names_in((await hub.client.get(PAGE)).text) == []
    assert (await sign_in_with(hub, device)).status_code == 403


@pytest.mark.parametrize("verb", ["rename", "remove"])
async def test_nobody_changes_the_passkeys_of_others(hub: SecureHub, verb: str) -> None:
    device = await a_passkey(hub)
    path = await action_of(hub, verb)
    await a_person(hub.database, "grace")
    await log_in(hub.client, "grace")
    fields = {"form_token": await token_of(hub), "name": "Mine"}

    response = await hub.client.post(path, data=fields)

    assert response.status_code == 404
    assert notices_in(response) == [f"There is no passkey {path.split('/')[3]}."]
    assert (await sign_in_with(hub, device)).status_code == 303


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/options", f"{PAGE}/a/rename", f"{PAGE}/a/remove"])
async def test_every_form_needs_its_token(hub: SecureHub, path: str) -> None:
    response = await hub.client.post(path, data={"form_token": "0" * 64})

    assert response.status_code == 403


@pytest.mark.parametrize("path", ["/login/passkey", "/login/passkey/options"])
async def test_another_site_cannot_begin_a_login(hub: SecureHub, path: str) -> None:
    response = await hub.client.post(path, headers={"Sec-Fetch-Site": "cross-site"})

    assert response.status_code == 403


async def test_who_signed_in_a_while_ago_is_asked_again_first(hub: SecureHub) -> None:
    token = await token_of(hub)
    clock.move(timedelta(minutes=16))

    shown = await hub.client.get(PAGE)
    asked = await hub.client.post(
        f"{PAGE}/options",
        data={"form_token": token},
        headers={"Referer": f"https://hub.test{PAGE}"},
    )

    again = "/login?next=/settings/passkeys&again=1"
    assert (shown.status_code, shown.headers["location"]) == (303, again)
    assert (asked.status_code, asked.headers["location"]) == (303, again)


async def test_the_passkey_of_a_disabled_user_is_refused(hub: SecureHub) -> None:
    device = await a_passkey(hub)
    async with hub.database.transaction() as conn:
        await accounts.disable_user(conn, await accounts.get_user(conn, "ada"))

    response = await sign_in_with(hub, device)

    assert (response.status_code, notices_in(response)) == (403, [REFUSED])


async def test_failed_passkeys_count_for_their_address(settings: Settings) -> None:
    few = replace(settings, login=replace(settings.login, address_attempts=2))
    async with secure_hub(few) as hub:
        codes = [(await hub.client.post("/login/passkey")).status_code for _ in range(3)]

    assert codes == [403, 403, 429]


@pytest.mark.parametrize(
    ("address", "possible"),
    [
        pytest.param("https://hub.example.com", True, id="a name over TLS"),
        pytest.param("http://localhost:8000", True, id="this machine"),
        pytest.param("http://hub.localhost:8000", True, id="a name of this machine"),
        pytest.param("http://hub.example.com", False, id="a name without TLS"),
        pytest.param("http://127.0.0.1:8000", False, id="the number of this machine"),
        pytest.param("https://192.0.2.1", False, id="a number over TLS"),
        pytest.param("https://[2001:db8::1]", False, id="a long number over TLS"),
    ],
)
async def test_where_browsers_allow_none_the_pages_offer_none(
    settings: Settings, address: str, *, possible: bool
) -> None:
    async with secure_hub(settings, address=address) as hub:
        await a_person(hub.database)
        login = (await hub.client.get("/login")).text
        response = await hub.client.post("/login/passkey/options")

    assert ("Sign in with a passkey" in login, response.status_code == 200) == (possible, possible)
    assert possible or response.json() == {
        "error": "Passkeys need an address that begins with https and a host name, or localhost."
    }
