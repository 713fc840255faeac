"""Accesses that expired long ago are forgotten, with their tokens."""

from datetime import timedelta

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.oauth import pruning
from oauth.token_flows import an_app, refreshed, tokens_of
from people import a_token
from workers import drain

TABLES = ("oauth_accesses", "oauth_refreshes", "tokens")


async def counts(database: Database) -> list[int]:
    async with database.read() as conn:
        return [await conn.fetch_value(f"SELECT count(*) FROM {table}") for table in TABLES]


async def test_only_what_expired_a_week_ago_is_forgotten(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 1)
    app = await an_app(database)
    await a_token(database, "ada")
    for _ in range(2):
        given = await tokens_of(client, database, app)
        await refreshed(client, app, given["refresh_token"])
    clock.move(timedelta(days=2))
    await tokens_of(client, database, app)

    clock.move(timedelta(days=94.9))
    await pruning.sweep_accesses(database)
    before = await counts(database)
    clock.move(timedelta(days=0.2))
    await pruning.sweep_accesses(database)

    assert before == [3, 5, 11]
    assert await counts(database) == [1, 1, 3]


async def test_both_tasks_are_added_once_a_day(database: Database) -> None:
    for _ in range(2):
        async with database.transaction() as conn:
            await pruning.schedule(conn)
    await drain(database)

    async with database.read() as conn:
        tasks = await conn.fetch_all("SELECT kind FROM tasks ORDER BY kind")
    assert [row["kind"] for row in tasks] == [pruning.PRUNE_APPS, pruning.SWEEP_ACCESSES]
