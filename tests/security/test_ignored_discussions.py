"""Ignoring a discussion is a change, which no credential for reading makes."""

import httpx2
import pytest

from community.discussions import PATH, a_discussion
from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from oauth.token_flows import an_app, bearer, tokens_of
from people import Headers, sign_in
from repositories import a_repo

LACKING = "You cannot do this with ada/engine: the token lacks the scope write-discussions."


@pytest.fixture(autouse=True)
async def discussion(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")
    await a_discussion(client, ada)


async def ignore(client: httpx2.AsyncClient, headers: Headers, *, on: bool = True) -> int:
    response = await client.post(f"{PATH}/1/ignore", headers=headers, json={"ignore": on})
    if response.status_code == 403:
        assert response.json() == {"error": LACKING}
    return response.status_code


async def muted_count(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value("SELECT count(*) FROM thread_mutes")
    return count


async def a_token_of_an_app(
    client: httpx2.AsyncClient, database: Database, *scopes: str
) -> Headers:
    app = await an_app(database, scopes=scopes)
    return bearer((await tokens_of(client, database, app))["access_token"])


async def test_who_may_only_read_ignores_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    reading = await sign_in(database, "ada", role=TokenRole.read)
    fine_grained = await sign_in(database, "ada", scopes=["read-repos", "write-repos"])
    app = await a_token_of_an_app(client, database, "read-repos")

    codes = [await ignore(client, headers) for headers in (reading, fine_grained, app, {})]

    assert codes == [403, 403, 403, 401]
    assert await muted_count(database) == 0


async def test_who_may_only_read_hears_of_nothing_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await ignore(client, ada)
    reading = await sign_in(database, "ada", role=TokenRole.read)

    assert await ignore(client, reading, on=False) == 403
    assert await muted_count(database) == 1


async def test_who_may_discuss_may_ignore(client: httpx2.AsyncClient, database: Database) -> None:
    writing = await sign_in(database, "bob")
    fine_grained = await sign_in(database, "bob", scopes=["write-discussions"])
    app = await a_token_of_an_app(client, database, "write-discussions")

    assert [await ignore(client, headers) for headers in (writing, fine_grained, app)] == [200] * 3
