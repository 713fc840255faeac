"""What belongs to an account is counted by totals alone, and members are paged by their ids."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import store
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.database import Database
from hublet.repos.browse import store as lists_store
from people import Headers, a_user, sign_in

PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}
ID = "1" * 24
COUNTS: dict[str, Callable[[Any], Awaitable[object]]] = {
    "members": lambda conn: store.count_members(conn, ID),
    "followers": lambda conn: users.count_followers(conn, account_id=ID),
    "followers of many": lambda conn: users.count_followers_of(conn, [ID]),
    "repositories": lambda conn: users.count_public_repos(conn, ID),
    "bytes": lambda conn: lists_store.size_of_owner(conn, ID),
}


class Recorder:
    """Stands for a connection, and notes the statement."""

    async def fetch_value(self, sql: str, *values: Any) -> int:
        self.statement = (sql, values)
        return 0

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        self.statement = (sql, values)
        return []


@pytest.mark.parametrize("counted", COUNTS)
async def test_nothing_is_counted_one_by_one(database: Database, counted: str) -> None:
    recorder: Any = Recorder()
    await COUNTS[counted](recorder)
    sql, values = recorder.statement

    async with database.transaction() as conn:
        rows = await conn.fetch_all(f"{PLANS[database.kind]} {sql}", *values)
    plan = "\n".join(str(row[-1]) for row in rows)

    assert "total_changes" in plan, plan
    for table in ("memberships", "follows", "users", "repos"):
        assert not re.search(rf"\b{table}\b", plan), plan


async def test_a_page_in_the_middle_begins_there_in_every_table(database: Database) -> None:
    recorder: Any = Recorder()
    await store.list_members(recorder, "1" * 24, after="5" * 24, limit=20)
    sql, values = recorder.statement

    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # As it does where both tables are large.
            for other in ("enable_nestloop", "enable_hashjoin", "enable_seqscan"):
                await conn.execute(f"SET LOCAL {other} = off")
        rows = await conn.fetch_all(f"{PLANS[database.kind]} {sql}", *values)
    plan = "\n".join(str(row[-1]) for row in rows)

    if database.kind == "sqlite":
        assert "(organization_id=? AND user_id>?)" in plan, plan
        assert "SEARCH u USING INDEX sqlite_autoindex_users_1 (id=?)" in plan, plan
    else:
        assert "Merge Join" in plan, plan
        assert "(user_id > '5" in plan, plan
        assert "(id > '5" in plan, plan


async def test_a_disabled_member_and_follower_does_not_count(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await client.post("/api/organizations", headers=ada, json={"name": "acme"})
    bob = await sign_in(database, "bob")
    await client.put("/api/organizations/acme/members/bob", headers=ada, json={"role": "read"})
    await client.post("/api/organizations/acme/follow", headers=bob)

    async def counts() -> tuple[int, int]:
        shown = (await client.get("/api/organizations/acme/overview")).json()
        return shown["numUsers"], shown["numFollowers"]

    assert await counts() == (2, 1)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, await a_user(database, "bob"))
    assert await counts() == (1, 0)
