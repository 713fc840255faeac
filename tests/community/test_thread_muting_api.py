"""Muting a thread: the same verb for papers, posts and blogs."""

import httpx2
import pytest

from community.public_threads import KINDS, a_thread, thread_id
from hublet.community.threads import store
from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from people import Headers, a_user, sign_in

pytestmark = pytest.mark.parametrize("kind", KINDS)


async def muted_by(client: httpx2.AsyncClient, database: Database, address: str) -> set[str]:
    async with database.read() as conn:
        return await store.list_muted(conn, await thread_id(client, address))


async def test_a_muted_thread_is_muted_for_one_person(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    user = await a_user(database, "ada")

    for _ in range(2):
        response = await client.post(f"{address}/mute", headers=ada)
        assert (response.status_code, response.json()) == (200, {"muted": True})

    assert await muted_by(client, database, address) == {user.id}


async def test_what_was_muted_is_heard_of_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    bob = await sign_in(database, "bob")
    for headers in (ada, bob):
        await client.post(f"{address}/mute", headers=headers)

    for _ in range(2):
        response = await client.delete(f"{address}/mute", headers=ada)
        assert (response.status_code, response.json()) == (200, {"muted": False})

    assert await muted_by(client, database, address) == {(await a_user(database, "bob")).id}


async def test_muting_needs_a_token_that_may_write(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    address = await a_thread(client, ada, kind)
    reader = await sign_in(database, "bob", role=TokenRole.read)

    for method in ("POST", "DELETE"):
        assert (await client.request(method, f"{address}/mute")).status_code == 401
        refused = await client.request(method, f"{address}/mute", headers=reader)
        assert refused.json() == {"error": "The token lacks the scope write-discussions."}
