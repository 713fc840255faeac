"""All rights at once: the same as one by one, for everybody and every kind of repository."""

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.repos import service as repos
from hublet.repos import store
from hublet.repos.records import Right
from hublet.tokens import service as tokens
from hublet.tokens.records import Caller
from people import a_token, an_organization, sign_in
from repositories import a_repo

# Who asks: their token's role or scopes, None for all of them.
CALLERS = {
    "nobody": None,
    "writer": None,
    "reader": None,
    "accepted": None,
    "stranger": None,
    "narrow": ["write-discussions"],
}


@pytest.mark.parametrize("repo", ["open", "closed", "gated"])
async def test_all_rights_are_those_that_one_may_have_one_by_one(
    client: httpx2.AsyncClient, database: Database, repo: str
) -> None:
    await an_organization(database, "lab", members={"writer": Role.write, "reader": Role.read})
    writer = await sign_in(database, "writer")
    repo_id = await a_repo(client, writer, f"lab/{repo}", private=repo == "closed")
    if repo == "gated":
        settings = {"gated": "auto"}
        await client.put("/api/models/lab/gated/settings", headers=writer, json=settings)
        await client.post("/lab/gated/ask-access", headers=await sign_in(database, "accepted"))

    for name, scopes in CALLERS.items():
        value = None if name == "nobody" else await a_token(database, name, scopes=scopes)
        async with database.read() as conn:
            found = await store.find(conn, repo_id)
            assert found is not None
            caller: Caller | None = None
            if value is not None:
                caller = await tokens.find_caller(conn, value)
            expected = {right for right in Right if await repos.may(conn, caller, found, right)}
            assert (await repos.get_viewer(conn, caller, found)).rights == expected, name
