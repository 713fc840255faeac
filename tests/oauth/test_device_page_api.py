"""The device page: the code first, then who asks, then a decision that counts once."""

from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.records import Role
from hublet.app import with_edge
from hublet.core import clock
from hublet.core.database import Database
from hublet.oauth import devices
from hublet.oauth.apps import store as apps
from hublet.oauth.clients import resolve_app
from hublet.oauth.records import (
    COMMAND_LINE_CLIENT_ID,
    Device,
    DeviceState,
    OAuthApp,
    StartedDevice,
)
from hublet.tokens.records import ALL_SCOPES, Scope
from oauth.browser_flows import an_app, hidden_fields, signed_in, text_of
from people import an_organization

WRONG = "BBBB-BBBB"
NOBODY = "No device waits under this code."


async def a_device(
    database: Database, app: OAuthApp, *, scopes: frozenset[Scope] = frozenset({Scope.openid})
) -> StartedDevice:
    async with database.transaction() as conn:
        return await devices.start(
            conn, app, scopes, address="198.51.100.4", agent="hf_hub/1.0; <python>"
        )


async def found(database: Database, device: StartedDevice) -> Device:
    async with database.read() as conn:
        found = await devices.find(conn, device.device_code)
    assert found is not None
    return found


async def enter(client: httpx2.AsyncClient, user_code: str) -> httpx2.Response:
    fields = hidden_fields(await client.get("/device"), "/device")
    return await client.post("/device", data=fields | {"user_code": user_code})


async def decide(
    client: httpx2.AsyncClient, page: httpx2.Response, decision: str, *organizations: str
) -> httpx2.Response:
    fields = hidden_fields(page, "/device/decision") | {"decision": decision}
    chosen = {"organization": list(organizations)}
    return await client.post("/device/decision", data=fields | chosen)


@pytest.mark.parametrize("path", ["/device", "/device?user_code=WDJB-MJHT"])
async def test_who_is_not_signed_in_signs_in_first(client: httpx2.AsyncClient, path: str) -> None:
    response = await client.get(path)

    assert response.status_code == 303
    login = httpx2.URL(response.headers["location"])
    assert (login.path, login.params["next"]) == ("/login", path)


async def test_a_link_fills_the_code_in_and_decides_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)

    page = await client.get("/device", params={"user_code": device.user_code.lower()})

    assert f'name="user_code" value="{device.user_code}"' in page.text
    assert "Loom" not in page.text
    assert (await found(database, device)).state is DeviceState.pending


async def test_a_strange_code_becomes_no_part_of_the_page(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database)

    page = await client.get("/device", params={"user_code": '"><script>'})

    assert 'value="&#34;&gt;&lt;script&gt;"' in page.text


async def test_the_person_sees_who_asks_for_what(
    client: httpx2.AsyncClient, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)

    page = await enter(client, device.user_code)

    at = (await found(database, device)).created_at.strftime("%Y-%m-%d %H:%M UTC")
    assert page.status_code == 200
    assert text_of(page) == (
        f"Is this code on your device? {device.user_code} Loom Client id loom Registered by olga "
        f"Asked from 198.51.100.4 With hf_hub/1.0; <python> At {at} Loom wants to "
        "Get an ID token in addition to the access token openid "
        "Allow it only if you started this yourself, and see the same code on your own device. "
        "Deny Allow"
    )


async def test_the_command_line_says_that_it_reaches_the_inbox(
    client: httpx2.AsyncClient, database: Database
) -> None:
    command_line = await resolve_app(database, COMMAND_LINE_CLIENT_ID)
    assert command_line is not None
    asked = [await a_device(database, command_line, scopes=ALL_SCOPES)]
    asked.append(await a_device(database, command_line, scopes=ALL_SCOPES - {Scope.jobs}))
    await signed_in(client, database)

    pages = [text_of(await enter(client, each.user_code)) for each in asked]

    assert ["Read your notifications, and change" in page for page in pages] == [True, False]


@pytest.mark.parametrize("typed", ["lower", "bare", "blanks", "dashes"])
async def test_the_code_may_be_typed_in_many_ways(
    client: httpx2.AsyncClient, database: Database, typed: str
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)
    bare = device.user_code.replace("-", "")
    ways = {
        "lower": device.user_code.lower(),
        "bare": bare,
        "blanks": f" {bare[:4]} {bare[4:]} ",
        "dashes": f"{bare[:4]}\N{EN DASH}{bare[4:]}",
    }

    page = await enter(client, ways[typed])

    assert "Is this code on your device?" in text_of(page)


async def test_allowing_lets_the_device_in(client: httpx2.AsyncClient, database: Database) -> None:
    device = await a_device(database, await an_app(database))
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    initech = await an_organization(database, "initech", members={"bob": Role.read})
    session = await signed_in(client, database)
    page = await enter(client, device.user_code)

    done = await decide(client, page, "allow", acme.id, initech.id)

    assert text_of(done).startswith("Loom is connected You can close this page")
    decided = await found(database, device)
    assert decided.state is DeviceState.approved
    assert decided.user_id == session.user_id
    assert decided.organization_ids == {acme.id}
    assert decided.authenticated_at == session.authenticated_at


async def test_no_organization_is_chosen_beforehand(
    client: httpx2.AsyncClient, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    acme = await an_organization(database, "acme", members={"ada": Role.read})
    await signed_in(client, database)

    page = await enter(client, device.user_code)

    assert f'name="organization" value="{acme.id}">' in page.text


@pytest.mark.parametrize("decision", ["deny", ""])
async def test_denying_leaves_the_device_outside(
    client: httpx2.AsyncClient, database: Database, decision: str
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)

    done = await decide(client, await enter(client, device.user_code), decision)

    assert text_of(done).startswith("Loom was denied It got nothing.")
    assert (await found(database, device)).state is DeviceState.denied


async def test_the_first_decision_counts(client: httpx2.AsyncClient, database: Database) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)
    page = await enter(client, device.user_code)
    await decide(client, page, "deny")

    second = await decide(client, page, "allow")

    assert second.status_code == 409
    assert "Somebody decided about this code already" in text_of(second)
    assert (await found(database, device)).state is DeviceState.denied


async def test_every_device_is_asked_about(client: httpx2.AsyncClient, database: Database) -> None:
    app = await an_app(database)
    await signed_in(client, database)
    for _ in range(2):
        device = await a_device(database, app)

        page = await enter(client, device.user_code)

        assert "Loom wants to Get an ID token" in text_of(page)
        await decide(client, page, "allow")


async def test_a_decided_or_expired_code_is_found_no_more(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    decided, expired = await a_device(database, app), await a_device(database, app)
    await signed_in(client, database)
    await decide(client, await enter(client, decided.user_code), "allow")
    clock.move(timedelta(seconds=901))

    again = [await enter(client, device.user_code) for device in (decided, expired)]

    assert [response.status_code for response in again] == [400, 400]
    assert all(NOBODY in text_of(response) for response in again)


async def test_a_decision_after_the_code_has_expired_is_too_late(
    client: httpx2.AsyncClient, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)
    clock.move(timedelta(minutes=10))
    page = await enter(client, device.user_code)
    clock.move(timedelta(minutes=6))

    too_late = await decide(client, page, "allow")

    assert too_late.status_code == 409
    assert (await found(database, device)).state is DeviceState.pending


async def test_an_app_that_goes_or_changes_gets_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    device = await a_device(database, app)
    await signed_in(client, database)
    page = await enter(client, device.user_code)
    async with database.transaction() as conn:
        await apps.raise_revision(conn, app.id)

    changed = await decide(client, page, "allow")

    assert changed.status_code == 409
    assert (await found(database, device)).state is DeviceState.pending


async def test_wrong_codes_are_counted_for_the_person(
    client: httpx2.AsyncClient, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)

    wrong = [await enter(client, WRONG) for _ in range(5)]
    right = await enter(client, device.user_code)
    await signed_in(client, database, "bob")
    of_another = await enter(client, device.user_code)

    assert [response.status_code for response in wrong] == [400] * 5
    assert right.status_code == 429
    assert 890 <= int(right.headers["retry-after"]) <= 900
    assert "Too many wrong codes." in text_of(right)
    assert of_another.status_code == 200


async def test_wrong_codes_are_counted_for_the_address(
    client: httpx2.AsyncClient, app: FastAPI, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    for name in ("ada", "bob", "cleo", "dan"):
        await signed_in(client, database, name)
        for _ in range(5):
            await enter(client, WRONG)

    await signed_in(client, database, "eve")
    refused = await enter(client, device.user_code)
    elsewhere = httpx2.ASGITransport(app=with_edge(app), client=("192.0.2.99", 1))
    async with httpx2.AsyncClient(transport=elsewhere, base_url="http://hub.test") as other:
        await signed_in(other, database, "fay")
        accepted = await enter(other, device.user_code)

    assert refused.status_code == 429
    assert 3590 <= int(refused.headers["retry-after"]) <= 3600
    assert accepted.status_code == 200


async def test_right_codes_are_not_counted(client: httpx2.AsyncClient, database: Database) -> None:
    app = await an_app(database)
    await signed_in(client, database)

    pages = [await enter(client, (await a_device(database, app)).user_code) for _ in range(7)]

    assert [page.status_code for page in pages] == [200] * 7


@pytest.mark.parametrize("path", ["/device", "/device/decision"])
@pytest.mark.parametrize(
    ("headers", "token"),
    [
        pytest.param({}, "0" * 64, id="without its token"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, None, id="from another site"),
    ],
)
async def test_a_form_that_the_person_did_not_send_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    path: str,
    headers: dict[str, str],
    token: str | None,
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database)
    page = await enter(client, device.user_code)
    of_page = await client.get("/device") if path == "/device" else page
    fields = hidden_fields(of_page, path) | {"decision": "allow", "user_code": device.user_code}

    response = await client.post(
        path, data=fields | ({"form_token": token} if token else {}), headers=headers
    )

    assert response.status_code == 403
    assert (await found(database, device)).state is DeviceState.pending


async def test_the_ticket_of_another_session_is_refused(
    client: httpx2.AsyncClient, database: Database
) -> None:
    device = await a_device(database, await an_app(database))
    await signed_in(client, database, "bob")
    of_bob = hidden_fields(await enter(client, device.user_code), "/device/decision")
    await signed_in(client, database, "ada")
    of_ada = hidden_fields(await enter(client, device.user_code), "/device/decision")

    response = await client.post(
        "/device/decision", data=of_ada | {"ticket": of_bob["ticket"], "decision": "allow"}
    )

    assert response.status_code == 400
    assert (await found(database, device)).state is DeviceState.pending
