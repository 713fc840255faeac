"""Saved queries of datasets: who keeps, sees, changes and deletes them."""

import re
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.sql import saved_queries
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Grants, Scope, TokenRole
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo

PATH = "/api/datasets/acme/words/sql-console/embed"
VIEW = {"key": "default/train", "displayName": "Train", "viewName": "train"}
BODY = {"title": "How many", "sql": "SELECT count(*) FROM train", "views": [VIEW]}
MEMBERS = {"ada": Role.admin, "reader": Role.read, "writer": Role.write}


@pytest.fixture
async def words(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    """A public dataset of an organization."""
    await an_organization(database, "acme", plan=OrganizationPlan.team, members=MEMBERS)
    return await a_repo(client, ada, "acme/words", type="dataset")


async def save(client: httpx2.AsyncClient, who: Headers, **changes: Any) -> dict[str, Any]:
    response = await client.post(PATH, headers=who, json=BODY | changes)
    assert response.status_code == 200, response.text
    saved: dict[str, Any] = response.json()
    return saved


async def titles(client: httpx2.AsyncClient, who: Headers) -> list[str]:
    response = await client.get(PATH, headers=who)
    assert response.status_code == 200, response.text
    return [each["title"] for each in response.json()]


async def hide(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await client.put(
        "/api/datasets/acme/words/settings", headers=ada, json={"private": True}
    )
    assert response.status_code == 200, response.text


async def test_a_query_is_saved_read_changed_and_deleted(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    saved = await save(client, ada)

    assert saved == {
        "_id": saved["_id"],
        "repoId": words,
        "userId": user.id,
        "slug": saved["slug"],
        "title": "How many",
        "sql": "SELECT count(*) FROM train",
        "views": [VIEW],
        "createdAt": saved["createdAt"],
        "private": False,
    }
    assert re.fullmatch("[A-Za-z0-9]{10}", saved["slug"])
    for name in (saved["_id"], saved["slug"]):
        assert (await client.get(f"{PATH}/{name}")).json() == saved
    change = {"title": "Rows", "sql": "FROM train", "private": True}
    changed = await client.patch(f"{PATH}/{saved['slug']}", headers=ada, json=change)
    assert (changed.status_code, changed.json()) == (200, saved | change)
    deleted = await client.delete(f"{PATH}/{saved['_id']}", headers=ada)
    assert (deleted.status_code, deleted.content) == (204, b"")
    gone = await client.get(f"{PATH}/{saved['_id']}", headers=ada)
    assert (gone.status_code, gone.json()["error"]) == (
        404,
        f"There is no saved query {saved['_id']} in this dataset, or you cannot see it.",
    )


async def test_the_newest_come_first_and_page_by_page(
    client: httpx2.AsyncClient, words: str, ada: Headers
) -> None:
    for title in ("one", "two", "three"):
        await save(client, ada, title=title)

    first = await client.get(PATH, params={"limit": 2})
    second = await client.get(first.links["next"]["url"])
    assert [each["title"] for each in first.json()] == ["three", "two"]
    assert [each["title"] for each in second.json()] == ["one"]
    broken = await client.get(PATH, params={"cursor": "bm9uc2Vuc2U"})
    assert broken.status_code == 400


async def test_a_private_query_is_found_by_its_author_alone(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    reader = await sign_in(database, "reader")
    saved = await save(client, reader, private=True)

    assert await titles(client, reader) == ["How many"]
    assert await titles(client, ada) == await titles(client, {}) == []
    for answer in (
        await client.get(f"{PATH}/{saved['slug']}", headers=ada),
        await client.patch(f"{PATH}/{saved['slug']}", headers=ada, json={"title": "X"}),
        await client.delete(f"{PATH}/{saved['slug']}", headers=ada),
    ):
        assert answer.status_code == 404


# What each may do with a query of `reader` in a public and in a private dataset: list, save, change.
@pytest.mark.parametrize(
    ("name", "in_public", "in_private"),
    [
        pytest.param(None, (200, 401, 401), (404, 401, 401), id="anonymous"),
        pytest.param("stranger", (200, 200, 403), (404, 404, 404), id="a stranger"),
        pytest.param("reader", (200, 200, 200), (200, 200, 200), id="the author, a reader"),
        pytest.param("writer", (200, 200, 200), (200, 200, 200), id="a member who manages"),
    ],
)
async def test_everybody_does_what_they_may(  # noqa: PLR0917 - fixtures
    client: httpx2.AsyncClient,
    words: str,
    database: Database,
    ada: Headers,
    name: str | None,
    in_public: tuple[int, int, int],
    in_private: tuple[int, int, int],
) -> None:
    who = await sign_in(database, name) if name else {}
    saved = await save(client, await sign_in(database, "reader"))

    async def statuses() -> tuple[int, int, int]:
        listed = await client.get(PATH, headers=who)
        made = await client.post(PATH, headers=who, json=BODY)
        change = {"title": "Mine now"}
        changed = await client.patch(f"{PATH}/{saved['slug']}", headers=who, json=change)
        return listed.status_code, made.status_code, changed.status_code

    assert await statuses() == in_public
    await hide(client, ada)
    assert await statuses() == in_private


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        pytest.param(["read-repos"], (200, 403, 403), id="read-repos"),
        pytest.param(["read-repos", "write-discussions"], (200, 200, 200), id="write-discussions"),
        pytest.param(["inference-api"], (404, 404, 404), id="neither"),
    ],
)
@pytest.mark.parametrize("kind", [TokenKind.access, TokenKind.oauth])
async def test_a_token_does_what_its_scopes_say(  # noqa: PLR0917 - fixtures
    client: httpx2.AsyncClient,
    words: str,
    database: Database,
    ada: Headers,
    kind: TokenKind,
    scopes: list[str],
    expected: tuple[int, int, int],
) -> None:
    saved = await save(client, ada)
    await hide(client, ada)
    user = await a_user(database, "ada")
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name="app",
            kind=kind,
            role=TokenRole.fine_grained,
            grants=Grants(everywhere=frozenset(map(Scope, scopes))),
        )
    who = {"Authorization": f"Bearer {value}"}

    read = await client.get(f"{PATH}/{saved['slug']}", headers=who)
    made = await client.post(PATH, headers=who, json=BODY)
    changed = await client.patch(f"{PATH}/{saved['slug']}", headers=who, json={"title": "X"})
    assert (read.status_code, made.status_code, changed.status_code) == expected


async def test_a_gated_dataset_shows_its_queries_to_those_with_access(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    await save(client, ada)
    gated = await client.put(
        "/api/datasets/acme/words/settings", headers=ada, json={"gated": "manual"}
    )
    assert gated.status_code == 200, gated.text

    stranger = await sign_in(database, "stranger")
    assert (await client.get(PATH, headers=stranger)).status_code == 403
    assert (await client.post(PATH, headers=stranger, json=BODY)).status_code == 403
    assert await titles(client, await sign_in(database, "reader")) == ["How many"]


async def test_only_the_author_makes_a_query_private(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    saved = await save(client, await sign_in(database, "reader"))

    refused = await client.patch(f"{PATH}/{saved['slug']}", headers=ada, json={"private": True})
    assert (refused.status_code, refused.json()["error"]) == (
        403,
        "private: only the author of a query can make it private.",
    )


async def test_other_repositories_have_no_console(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await client.post("/api/models/ada/engine/sql-console/embed", headers=ada, json=BODY)
    assert (response.status_code, response.json()["error"]) == (
        404,
        "Only datasets have an SQL console: this is a model.",
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"title": "x" * 201}, "title", id="a long title"),
        pytest.param({"title": "two\nlines"}, "title", id="two lines"),
        pytest.param({"sql": ""}, "sql", id="no query"),
        pytest.param({"sql": "x" * 20_001}, "sql", id="a long query"),
        pytest.param({"views": []}, "views", id="no view"),
        pytest.param({"views": [VIEW, VIEW]}, "views: each viewName", id="a view twice"),
        pytest.param({"private": "yes"}, "private", id="no boolean"),
    ],
)
async def test_what_cannot_be_saved_is_refused(
    client: httpx2.AsyncClient, words: str, ada: Headers, change: dict[str, Any], problem: str
) -> None:
    response = await client.post(PATH, headers=ada, json=BODY | change)

    assert response.status_code == 400
    assert problem in response.json()["error"]
    assert await titles(client, ada) == []


async def test_there_is_a_bound_for_each_person_and_for_the_dataset(
    client: httpx2.AsyncClient,
    words: str,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(saved_queries, "MOST_OF_USER", 2)
    monkeypatch.setattr(saved_queries, "MOST_OF_DATASET", 3)
    await save(client, ada)
    await save(client, ada)

    own = await client.post(PATH, headers=ada, json=BODY)
    assert (own.status_code, own.json()["error"]) == (
        409,
        "A person has in each dataset at most 2 saved queries: delete one first.",
    )
    await save(client, await sign_in(database, "reader"))
    other = await client.post(PATH, headers=await sign_in(database, "writer"), json=BODY)
    assert (other.status_code, other.json()["error"]) == (
        409,
        "A dataset has at most 3 saved queries: delete one first.",
    )


async def test_queries_follow_a_renamed_dataset_and_go_with_a_deleted_one(
    client: httpx2.AsyncClient, words: str, database: Database, ada: Headers
) -> None:
    saved = await save(client, ada)
    move = {"fromRepo": "acme/words", "toRepo": "ada/letters", "type": "dataset"}
    assert (await client.post("/api/repos/move", headers=ada, json=move)).status_code == 200

    moved = await client.get(f"/api/datasets/ada/letters/sql-console/embed/{saved['slug']}")
    assert moved.json() == saved
    assert (await client.get(PATH)).status_code == 307
    gone = {"name": "letters", "organization": "ada", "type": "dataset"}
    deleted = await client.request("DELETE", "/api/repos/delete", headers=ada, json=gone)
    assert deleted.status_code == 200, deleted.text
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM saved_queries") == 0
