"""`GET /oauth/jwks` and what signs ID tokens, across the replacement of a key."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from hublet.core import clock
from hublet.core.database import Database
from hublet.oauth import signing_keys as keys
from hublet.oauth import signing_keys_store


@pytest.fixture
def moved_clock() -> Iterator[None]:
    yield
    clock.reset()


async def shown_keys(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    response = await client.get("/oauth/jwks")
    assert response.status_code == 200
    found: list[dict[str, Any]] = response.json()["keys"]
    return found


async def test_the_keys_are_public_and_say_what_they_are_for(client: httpx2.AsyncClient) -> None:
    [key] = await shown_keys(client)

    assert {**key, "n": None, "kid": None} == {
        "kty": "RSA", "use": "sig", "alg": "RS256", "e": "AQAB", "n": None, "kid": None,
    }  # fmt: skip


async def test_who_has_the_list_is_told_so(client: httpx2.AsyncClient) -> None:
    first = await client.get("/oauth/jwks")

    again = await client.get("/oauth/jwks", headers={"If-None-Match": first.headers["ETag"]})

    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert again.status_code == 304


async def test_those_who_ask_first_at_the_same_moment_get_one_key(database: Database) -> None:
    found = await asyncio.gather(*(keys.get_signing_key(database) for _ in range(4)))

    assert len({key.id for key in found}) == 1


async def test_the_private_part_is_sealed(database: Database) -> None:
    key = await keys.get_signing_key(database)

    assert b'"d"' not in key.sealed_private
    assert "d" not in key.public


@pytest.mark.usefixtures("moved_clock")
async def test_a_key_is_replaced_without_a_moment_in_which_a_token_cannot_be_checked(
    client: httpx2.AsyncClient, database: Database
) -> None:
    before = await keys.sign(database, {"n": 1})
    clock.move(timedelta(days=89))
    await keys.replace_keys(database)
    ahead = await shown_keys(client)
    still = await keys.sign(database, {"n": 2})
    clock.move(timedelta(days=1))
    after = await keys.sign(database, {"n": 3})
    shown = KeySet.import_key_set({"keys": [dict(key) for key in await shown_keys(client)]})

    assert len(ahead) == 2
    assert [
        jwt.decode(token, shown, algorithms=["RS256"]).claims for token in (before, still, after)
    ] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert jwt.decode(after, shown).header["kid"] == ahead[0]["kid"]
    assert jwt.decode(still, shown).header["kid"] == ahead[1]["kid"]

    clock.move(timedelta(days=1))
    await keys.replace_keys(database)
    async with database.read() as conn:
        assert [key.id for key in await signing_keys_store.list_all(conn)] == [ahead[0]["kid"]]


@pytest.mark.usefixtures("moved_clock")
async def test_looking_after_the_keys_again_changes_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await keys.get_signing_key(database)
    clock.move(timedelta(days=89))
    await keys.replace_keys(database)
    await keys.replace_keys(database)

    assert len(await shown_keys(client)) == 2
