"""Downloads by day: how they are counted, shown and forgotten."""

from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core import clock
from hublet.core.database import Database
from hublet.repos import download_counter, store
from people import Headers
from repositories import a_repo


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


async def history(database: Database, repo_id: str, days: int = 3) -> list[int]:
    async with database.read() as conn:
        repo = await store.find(conn, repo_id)
        assert repo is not None
        return await download_counter.history_of(conn, repo, days=days)


async def test_downloads_are_kept_by_day(app: FastAPI, database: Database, repo_id: str) -> None:
    for people, wait in (("ab", 1), ("", 1), ("cde", 0)):
        for person in people:
            app.state.downloads.count(repo_id, who=person)
        await app.state.downloads.flush()
        clock.move(timedelta(days=wait))

    assert await history(database, repo_id) == [2, 0, 3]
    assert await history(database, repo_id, days=2) == [0, 3]


async def test_counts_of_one_day_add_up(app: FastAPI, database: Database, repo_id: str) -> None:
    for person in "abc":
        app.state.downloads.count(repo_id, who=person)
        await app.state.downloads.flush()

    assert await history(database, repo_id, days=1) == [3]


async def test_a_repository_that_is_gone_is_skipped(
    app: FastAPI, database: Database, client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    app.state.downloads.count(repo_id, who="a")
    app.state.downloads.count(other, who="a")
    async with database.transaction() as conn:
        await store.remove(conn, repo_id)

    await app.state.downloads.flush()

    assert await history(database, other, days=1) == [1]


async def test_days_are_forgotten_after_400(app: FastAPI, database: Database, repo_id: str) -> None:
    app.state.downloads.count(repo_id, who="a")
    await app.state.downloads.flush()
    kept = []
    for days in (399, 1):
        clock.move(timedelta(days=days))
        app.state.downloads.count(repo_id, who=f"after {days} days")
        await app.state.downloads.flush()
        kept.append(sum(await history(database, repo_id, days=1000)))

    assert kept == [2, 2]
