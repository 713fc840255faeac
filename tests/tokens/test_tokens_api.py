"""A user's own tokens."""

import asyncio
from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.clock import now, wire
from hublet.core.database import Database
from hublet.tokens.records import Scope, TokenRole
from people import Headers, sign_in

PATH = "/api/settings/tokens"
WHOAMI = "/api/whoami-v2"


async def create(client: httpx2.AsyncClient, headers: Headers, **body: object) -> httpx2.Response:
    return await client.post(PATH, headers=headers, json={"name": "laptop"} | body)


async def test_a_created_token_works_and_is_shown_once(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    created = (await create(client, ada, role="write")).json()
    listed = (await client.get(PATH, headers=ada)).json()
    who = await client.get(WHOAMI, headers={"Authorization": f"Bearer {created['value']}"})

    assert who.status_code == 200
    assert created["token"] == {
        "id": created["token"]["id"],
        "name": "laptop",
        "role": "write",
        "scopes": sorted(Scope),
        "hint": f"hf_…{created['value'][-4:]}",
        "createdAt": created["token"]["createdAt"],
    }
    assert created["token"] in listed
    assert created["value"] not in str(listed)


async def test_values_have_the_documented_form(client: httpx2.AsyncClient, ada: Headers) -> None:
    value = (await create(client, ada)).json()["value"]

    assert value.startswith("hf_")
    assert len(value) == 3 + 43 + 6


async def test_a_fine_grained_token_lists_its_scopes(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    created = await create(client, ada, role="fineGrained", scopes=["jobs", "write-repos"])

    # A scope brings along what it includes.
    assert created.json()["token"]["scopes"] == ["jobs", "read-repos", "write-repos"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"name": " "}, "name must have at least 1 character(s)."),
        ({"name": "x" * 201}, "name must have at most 200 characters."),
        ({"role": "god"}, "role must be one of 'read', 'write' or 'fineGrained'."),
        (
            {"role": "write", "scopes": ["jobs"]},
            "Scopes belong to fine-grained tokens, and those need some.",
        ),
        ({"role": "fineGrained"}, "Scopes belong to fine-grained tokens, and those need some."),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt must lie in the future."),
        (
            {"expiresAt": "2099-01-01T00:00:00"},
            "expiresAt must be a timestamp with a time zone, such as 2026-11-15T01:44:56Z.",
        ),
        ({"value": "hf_mine"}, "value is not a known field."),
    ],
)
async def test_a_refusal_names_the_field_and_the_rule(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object], sentence: str
) -> None:
    response = await create(client, ada, **body)

    assert response.status_code == 400
    assert response.json() == {"error": sentence}


async def test_a_token_dies_at_its_hour(client: httpx2.AsyncClient, ada: Headers) -> None:
    created = await create(client, ada, expiresAt=wire(now() + timedelta(hours=1)))
    headers = {"Authorization": f"Bearer {created.json()['value']}"}
    assert (await client.get(WHOAMI, headers=headers)).status_code == 200

    # The token is remembered now; its hour counts all the same.
    clock.move(timedelta(hours=1, seconds=1))

    assert (await client.get(WHOAMI, headers=headers)).status_code == 401


async def test_a_revoked_token_is_dead_at_once_and_for_good(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    created = (await create(client, ada)).json()
    headers = {"Authorization": f"Bearer {created['value']}"}
    await client.get(WHOAMI, headers=headers)

    for _ in range(2):
        response = await client.delete(f"{PATH}/{created['token']['id']}", headers=ada)
        assert response.json() == {}

    assert (await client.get(WHOAMI, headers=headers)).status_code == 401


async def test_another_users_token_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    token_id = (await create(client, ada)).json()["token"]["id"]
    bob = await sign_in(database, "bob")

    response = await client.delete(f"{PATH}/{token_id}", headers=bob)

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no token {token_id}."}


@pytest.mark.parametrize("scopes", [None, list(Scope)])
async def test_only_a_write_token_may_make_tokens(
    client: httpx2.AsyncClient, database: Database, scopes: list[str] | None
) -> None:
    bob = await sign_in(database, "bob", role=TokenRole.read, scopes=scopes)

    response = await create(client, bob)

    assert response.status_code == 403
    assert response.json() == {"error": "This needs a token with the role write."}


async def test_last_use_is_remembered(
    client: httpx2.AsyncClient, app: FastAPI, ada: Headers
) -> None:
    assert "lastUsedAt" not in (await client.get(PATH, headers=ada)).json()[0]

    await client.get(WHOAMI, headers=ada)
    await app.state.callers.flush()

    assert "lastUsedAt" in (await client.get(PATH, headers=ada)).json()[0]


async def test_many_callers_at_once_do_not_keep_connections_from_each_other(
    client: httpx2.AsyncClient, database: Database
) -> None:
    # More than the pool of the tests holds, and each token must be looked up first.
    callers = [await sign_in(database, f"caller-{n}") for n in range(12)]

    answers = await asyncio.gather(*(client.get(PATH, headers=caller) for caller in callers))

    assert {answer.status_code for answer in answers} == {200}
