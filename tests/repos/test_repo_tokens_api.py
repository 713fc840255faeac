"""Tokens for one repository: what they reach, and when they end."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole
from people import Headers, a_token, a_user, an_organization, sign_in
from repositories import a_repo

JWT = "/api/models/ada/engine/jwt"
REFS = "/api/models/ada/engine/refs"
BRANCH = "/api/models/ada/engine/branch/feature"

pytestmark = pytest.mark.usefixtures("repo_id")


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine", visibility="private")


async def ask(client: httpx2.AsyncClient, headers: Headers, **query: Any) -> Headers:
    """Return the header of a new token for the repository."""
    response = await client.get(JWT, headers=headers, params=query)
    assert response.status_code == 200, response.text
    return {"Authorization": response.json()["accessToken"]}


async def status(client: httpx2.AsyncClient, headers: Headers, path: str = REFS) -> int:
    return (await client.get(path, headers=headers)).status_code


async def writes(client: httpx2.AsyncClient, headers: Headers) -> int:
    return (await client.post(BRANCH, headers=headers, json={})).status_code


async def test_one_to_read_reads_and_one_to_write_writes(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    reader, writer = await ask(client, ada), await ask(client, ada, write=True)

    assert [await status(client, each) for each in (reader, writer)] == [200, 200]
    assert [await writes(client, each) for each in (reader, writer)] == [403, 200]


async def test_it_lives_an_hour_for_reading_and_ten_minutes_for_writing(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    present = clock.micros() // 1_000_000
    lives = [
        (await client.get(JWT, headers=ada, params=query)).json()["exp"] - present
        for query in ({}, {"write": True}, {"expires_in": 60}, {"expires_in": 86_400})
    ]

    assert [round(life, -1) for life in lives] == [3600, 600, 60, 3600]
    refused = await client.get(JWT, headers=ada, params={"expires_in": 0})
    assert refused.status_code == 400


async def test_it_ends_when_its_time_is_up(client: httpx2.AsyncClient, ada: Headers) -> None:
    token = await ask(client, ada, expires_in=60)

    clock.move(timedelta(seconds=61))
    try:
        assert await status(client, token) == 401
    finally:
        clock.reset()


async def test_it_reaches_nothing_but_its_repository(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/other", visibility="private")
    token = await ask(client, ada, write=True)

    assert await status(client, token, "/api/models/ada/other") == 404
    assert await status(client, token, "/api/settings/webhooks") == 403
    assert await status(client, token, "/api/notifications") == 403
    created = await client.post("/api/repos/create", headers=token, json={"name": "third"})
    deleted = await client.request(
        "DELETE", "/api/repos/delete", headers=token, json={"name": "engine"}
    )
    listed = await client.get("/api/models", headers=token, params={"author": "ada"})
    assert (created.status_code, deleted.status_code, listed.json()) == (403, 403, [])


async def test_it_gives_no_further_ones(client: httpx2.AsyncClient, ada: Headers) -> None:
    token = await ask(client, ada)

    response = await client.get(JWT, headers=token)

    assert (response.status_code, response.json()["error"]) == (
        403,
        "A token for one repository gives no others: use a token of your own.",
    )


async def test_it_ends_with_the_token_that_it_was_asked_with(
    client: httpx2.AsyncClient, database: Database
) -> None:
    value = await a_token(database, "ada")
    token = await ask(client, {"Authorization": f"Bearer {value}"})
    before = await status(client, token)
    async with database.transaction() as conn:
        caller = await tokens.find_caller(conn, value)
        assert caller is not None
        await tokens.revoke(conn, token_id=caller.token.id, user_id=caller.user_id, reason="test")

    assert (before, await status(client, token)) == (200, 401)


async def test_it_ends_with_the_right_of_its_holder(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(database, "engines", members={"bob": Role.write})
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "engines/one", visibility="private")
    path = "/api/models/engines/one"
    response = await client.get(f"{path}/jwt", headers=bob)
    token = {"Authorization": response.json()["accessToken"]}
    before = await status(client, token, path)
    async with database.transaction() as conn:
        user = await a_user(database, "bob")
        await organizations.remove_member(conn, OPERATOR, organization, user)

    assert (before, await status(client, token, path)) == (200, 404)


async def test_nobody_gets_one_for_more_than_they_may(
    client: httpx2.AsyncClient, database: Database
) -> None:
    value = await a_token(database, "ada", role=TokenRole.read)
    reader = {"Authorization": f"Bearer {value}"}
    bob = await sign_in(database, "bob")

    assert [await status(client, each, JWT) for each in (bob, {}, reader)] == [404, 401, 200]
    response = await client.get(JWT, headers=reader, params={"write": True})
    assert response.status_code == 403


async def test_a_forged_one_is_none(client: httpx2.AsyncClient, ada: Headers) -> None:
    value = (await ask(client, ada))["Authorization"]
    body, _, signature = value.partition(".")

    for forged in (f"{body}.", f"{body}.{'0' * len(signature)}", f"{body}A.{signature}"):
        assert await status(client, {"Authorization": forged}) == 401
