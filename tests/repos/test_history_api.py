"""The commits of a revision."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.core.paging import write_cursor
from people import Headers
from repos.content import put
from repositories import a_repo

PATH = "/api/models/ada/engine/commits"


@pytest.fixture
async def commits(client: httpx2.AsyncClient, database: Database, ada: Headers) -> list[str]:
    """The ids of three commits on a branch, oldest first."""
    repo_id = await a_repo(client, ada, "ada/engine")
    return [
        await put(
            database,
            repo_id,
            {"a": b"%d" % number},
            ref="refs/heads/feat/x",
            at=number,
            message=f"Step <{number}>.\n\nBecause & more.\n",
        )
        for number in range(3)
    ]


async def test_commits_come_newest_first(client: httpx2.AsyncClient, commits: list[str]) -> None:
    response = await client.get(f"{PATH}/feat%2Fx")

    assert response.json()[:1] == [
        {
            "id": commits[2],
            "title": "Step <2>.",
            "message": "Because & more.",
            "authors": [{"user": "ada"}],
            "date": "1970-01-01T00:00:02.000Z",
            "parents": [commits[1]],
        }
    ]
    assert [commit["id"] for commit in response.json()] == commits[::-1]


async def test_formatted_texts_are_safe_in_a_page(
    client: httpx2.AsyncClient, commits: list[str]
) -> None:
    response = await client.get(f"{PATH}/{commits[0]}?expand%5B%5D=formatted")

    assert [commit["formatted"] for commit in response.json()] == [
        {"title": "Step &lt;0&gt;.", "message": "Because &amp; more."}
    ]


async def test_pages_go_on_in_the_commit_of_the_first(
    client: httpx2.AsyncClient, database: Database, commits: list[str]
) -> None:
    url, seen = f"{PATH}/feat%2Fx?limit=2", []
    while url:
        response = await client.get(url)
        seen.append([commit["id"] for commit in response.json()])
        url = response.links.get("next", {}).get("url", "")
        await _move_on(client, database)

    assert seen == [[commits[2], commits[1]], [commits[0]]]


async def _move_on(client: httpx2.AsyncClient, database: Database) -> None:
    async with database.read() as conn:
        repo_id = await conn.fetch_value("SELECT id FROM repos")
    await put(database, repo_id, {"b": b""}, ref="refs/heads/feat/x", at=9)


async def test_the_first_commit_is_by_who_created_the_repository(
    client: httpx2.AsyncClient, commits: list[str]
) -> None:
    [first] = (await client.get(f"{PATH}/main")).json()

    assert (first["title"], first["authors"], first["parents"]) == (
        "initial commit",
        [{"user": "ada"}],
        [],
    )


@pytest.mark.parametrize("cursor", ["x", "aXNh"])
async def test_a_cursor_of_our_own_form_is_needed(
    client: httpx2.AsyncClient, commits: list[str], cursor: str
) -> None:
    response = await client.get(f"{PATH}/main?cursor={cursor}")

    assert response.status_code == 400


async def test_a_position_that_is_no_number_is_refused(
    client: httpx2.AsyncClient, commits: list[str]
) -> None:
    cursor = write_cursor(f"{commits[0]}:9999999999")

    response = await client.get(f"{PATH}/main?cursor={cursor}")

    assert response.status_code == 400


async def test_an_unknown_revision_is_told_by_its_code(
    client: httpx2.AsyncClient, commits: list[str]
) -> None:
    response = await client.get(f"{PATH}/nowhere")

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RevisionNotFound")
