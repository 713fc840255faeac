"""Secrets of apps: shown once, replaced with an overlap, deleted."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.sealing import KeyRing
from hublet.oauth.apps import client_secrets
from hublet.oauth.apps.service import find_app, find_secret_of
from hublet.tokens.format import has_valid_checksum
from oauth.app_requests import PATH, create_app, create_secret, show_app
from people import Headers
from workers import drain


async def works(database: Database, client_id: str, value: str) -> bool:
    async with database.read() as conn:
        app = await find_app(conn, client_id)
        assert app is not None
        return await find_secret_of(conn, app, value) is not None


async def test_a_secret_is_shown_once_and_never_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]

    created = await create_secret(client, ada, client_id)

    value = created["value"]
    assert value.startswith("hf_cs_")
    assert has_valid_checksum(value)
    secret = {
        "id": created["secret"]["id"],
        "hint": f"hf_cs_…{value[-4:]}",
        "createdAt": created["secret"]["createdAt"],
    }
    assert created == {"secret": secret, "value": value}
    app = await show_app(client, ada, client_id)
    assert (app["isPublic"], app["secrets"]) == (False, [secret])
    for path in (PATH, f"{PATH}/{client_id}"):
        assert value not in (await client.get(path, headers=ada)).text
    assert await works(database, client_id, value)


async def test_the_value_is_nowhere_in_the_database(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    value = (await create_secret(client, ada, client_id))["value"]

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT * FROM oauth_secrets")

    assert len(rows) == 1
    assert value not in str([list(row) for row in rows])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda value: "", id="nothing"),
        pytest.param(lambda value: value[:-1], id="cut off"),
        pytest.param(lambda value: value + "x", id="longer"),
        pytest.param(lambda value: value.swapcase(), id="other letters"),
        pytest.param(lambda value: f" {value}", id="a blank before it"),
        pytest.param(lambda value: "\ud800", id="half a character"),
    ],
)
async def test_anything_but_the_value_is_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers, change: Any
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    value = (await create_secret(client, ada, client_id))["value"]

    assert not await works(database, client_id, change(value))


async def test_the_secret_of_another_app_is_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    other_id = (await create_app(client, ada))["clientId"]
    value = (await create_secret(client, ada, other_id))["value"]

    assert not await works(database, client_id, value)
    assert await works(database, other_id, value)


async def test_a_replaced_secret_works_for_another_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    old = await create_secret(client, ada, client_id)
    new = await create_secret(client, ada, client_id)

    shown = (await show_app(client, ada, client_id))["secrets"]
    assert shown == [old["secret"] | {"expiresAt": shown[0]["expiresAt"]}, new["secret"]]

    clock.move(timedelta(hours=23, minutes=59))
    assert await works(database, client_id, old["value"])
    assert await works(database, client_id, new["value"])
    clock.move(timedelta(minutes=2))
    assert not await works(database, client_id, old["value"])
    assert await works(database, client_id, new["value"])


async def test_the_overlap_can_be_chosen(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    first = (await create_secret(client, ada, client_id))["value"]
    second = (await create_secret(client, ada, client_id, overlapSeconds=3600))["value"]
    third = (await create_secret(client, ada, client_id, overlapSeconds=2592000))["value"]

    clock.move(timedelta(seconds=3601))
    assert [await works(database, client_id, each) for each in (first, second, third)] == [
        False,
        True,
        True,
    ]
    await create_secret(client, ada, client_id, overlapSeconds=0)
    assert not await works(database, client_id, third)
    assert len((await show_app(client, ada, client_id))["secrets"]) == 1


@pytest.mark.parametrize("seconds", [-1, 2592001, 1.5, "x"])
async def test_the_overlap_has_bounds(
    client: httpx2.AsyncClient, ada: Headers, seconds: object
) -> None:
    client_id = (await create_app(client, ada))["clientId"]

    response = await client.post(
        f"{PATH}/{client_id}/secrets", headers=ada, json={"overlapSeconds": seconds}
    )

    assert response.status_code == 400
    assert "overlapSeconds" in response.json()["error"]


async def test_a_secret_needs_no_body(client: httpx2.AsyncClient, ada: Headers) -> None:
    client_id = (await create_app(client, ada))["clientId"]

    response = await client.post(f"{PATH}/{client_id}/secrets", headers=ada)

    assert response.status_code == 200


async def test_only_some_secrets_work_at_a_time(client: httpx2.AsyncClient, ada: Headers) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    for _ in range(client_secrets.MAX_SECRETS):
        await create_secret(client, ada, client_id)

    refused = await client.post(f"{PATH}/{client_id}/secrets", headers=ada, json={})

    assert (refused.status_code, refused.json()) == (
        409,
        {"error": "The app has 10 secrets that still work: delete one, or let one expire first."},
    )
    clock.move(timedelta(hours=24, seconds=1))
    await create_secret(client, ada, client_id)


async def test_without_secrets_an_app_is_public(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    values = [(await create_secret(client, ada, client_id))["value"] for _ in range(2)]

    deleted = await client.delete(f"{PATH}/{client_id}/secrets", headers=ada)

    assert (deleted.status_code, deleted.json()) == (200, {})
    app = await show_app(client, ada, client_id)
    assert (app["isPublic"], app["secrets"]) == (True, [])
    assert not any([await works(database, client_id, value) for value in values])


async def test_one_secret_can_be_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    leaked = await create_secret(client, ada, client_id)
    kept = await create_secret(client, ada, client_id)
    path = f"{PATH}/{client_id}/secrets/{leaked['secret']['id']}"

    deleted = await client.delete(path, headers=ada)
    again = await client.delete(path, headers=ada)

    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": f"The app has no secret {leaked['secret']['id']}."},
    )
    assert not await works(database, client_id, leaked["value"])
    assert await works(database, client_id, kept["value"])


async def test_the_secret_of_another_app_cannot_be_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    other_id = (await create_app(client, ada))["clientId"]
    secret = await create_secret(client, ada, other_id)

    path = f"{PATH}/{client_id}/secrets/{secret['secret']['id']}"
    assert (await client.delete(path, headers=ada)).status_code == 404
    assert await works(database, other_id, secret["value"])


async def test_time_alone_never_makes_an_app_public(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    old = await create_secret(client, ada, client_id)
    new = await create_secret(client, ada, client_id)
    await client.delete(f"{PATH}/{client_id}/secrets/{new['secret']['id']}", headers=ada)

    clock.move(timedelta(days=2))

    assert not await works(database, client_id, old["value"])
    assert not (await show_app(client, ada, client_id))["isPublic"]


async def test_a_secret_works_on_when_the_keys_are_rotated(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    value = (await create_secret(client, ada, client_id))["value"]
    before = database.hub.keys.keys

    rotated = KeyRing(keys=(*KeyRing.new().keys, *before))
    monkeypatch.setattr(KeyRing, "digests", lambda _, *a: _digests(rotated, *a))

    assert await works(database, client_id, value)


_digests = KeyRing.digests


async def test_a_secret_that_somebody_found_works_no_more_and_its_owner_is_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    client_id = (await create_app(client, ada))["clientId"]
    value = (await create_secret(client, ada, client_id))["value"]

    reported = await client.post("/api/credentials/revoke", json={"credentials": [value]})
    await drain(database)

    assert reported.status_code == 202
    assert not await works(database, client_id, value)
    # An app that lost its secret is not everybody's.
    assert not (await show_app(client, ada, client_id))["isPublic"]
    inbox = (await client.get("/api/notifications", headers=ada)).json()
    assert len(inbox["notifications"]) == 1
    assert "secret of Engine" in inbox["notifications"][0]["post"]["title"]
