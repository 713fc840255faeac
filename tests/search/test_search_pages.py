"""The pages of `search.service`: kinds, cursors, counts, corrections and suggestions."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.core.errors import InvalidRequest
from hublet.search import service
from hublet.search.records import SearchHit, SearchKind, SearchPage, SearchQuery
from people import Headers, a_user
from repositories import a_repo
from search.quick_searches import in_step


@pytest.fixture
async def hub(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Database:
    for number in range(5):
        await a_repo(client, ada, f"ada/engine-{number}")
    await a_repo(client, ada, "ada/engine-data", type="dataset")
    await a_repo(client, ada, "ada/secret-engine", private=True)
    await a_user(database, "engineer")
    await client.post("/api/posts", headers=ada, json={"content": "Engines at last."})
    blog = {"title": "The engine room", "content": "Steam everywhere."}
    await client.post("/api/blog", headers=ada, json=blog)
    await in_step(database)
    return database


async def a_page(hub: Database, text: str, **query: object) -> SearchPage:
    async with hub.read() as conn:
        return await service.search(conn, None, SearchQuery(text=text, **query))  # type: ignore[arg-type]


def addresses(hits: list[SearchHit] | tuple[SearchHit, ...]) -> list[str]:
    return [f"{hit.kind}:{getattr(hit.target, 'name', '') or hit.target.title}" for hit in hits]  # type: ignore[union-attr]


async def test_a_page_has_all_kinds_and_counts_them(hub: Database) -> None:
    page = await a_page(hub, "engine")

    assert set(addresses(page.hits)) == {
        *(f"model:engine-{number}" for number in range(5)),
        "dataset:engine-data", "user:engineer", "post:Engines at last.", "blog:The engine room",
    }  # fmt: skip
    assert {kind: count for kind, count in page.counts.items() if count} == {
        SearchKind.model: 5, SearchKind.dataset: 1, SearchKind.user: 1, SearchKind.post: 1,
        SearchKind.blog: 1,
    }  # fmt: skip
    assert (page.next_cursor, page.suggestion, page.is_corrected) == ("", "", False)


async def test_pages_follow_each_other_without_a_gap(hub: Database) -> None:
    whole, paged, cursor = await a_page(hub, "engine"), list[str](), ""
    for _ in range(9):
        page = await a_page(hub, "engine", limit=1, cursor=cursor)
        paged += addresses(page.hits)
        cursor = page.next_cursor
    assert (paged, cursor) == (addresses(whole.hits), "")


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        pytest.param("engine", (SearchKind.dataset,), ["dataset:engine-data"], id="one kind"),
        pytest.param("everywhere", (SearchKind.blog,), ["blog:The engine room"], id="a text"),
        pytest.param("engine", (SearchKind.paper, SearchKind.bucket), [], id="none of these"),
    ],
)
async def test_a_page_has_the_wanted_kinds(
    hub: Database, text: str, kinds: tuple[SearchKind, ...], expected: list[str]
) -> None:
    assert addresses((await a_page(hub, text, kinds=kinds)).hits) == expected


async def test_a_mistyped_query_is_corrected_on_every_page(hub: Database) -> None:
    models = (SearchKind.model,)
    first = await a_page(hub, "enigne", kinds=models, limit=3)
    second = await a_page(hub, "enigne", kinds=models, limit=3, cursor=first.next_cursor)

    assert (first.suggestion, first.is_corrected) == ("engine", True)
    assert first.counts == {SearchKind.model: 5}
    assert len(set(addresses(first.hits)) | set(addresses(second.hits))) == 5
    assert second.next_cursor == ""


async def test_few_hits_come_with_a_suggestion(hub: Database) -> None:
    page = await a_page(hub, "engines")

    assert addresses(page.hits) == ["post:Engines at last."]
    assert (page.suggestion, page.is_corrected) == ("engine", False)


async def test_a_word_without_anything_near_is_not_corrected(hub: Database) -> None:
    page = await a_page(hub, "zeppelin")

    assert (page.hits, page.suggestion, page.is_corrected) == ((), "", False)


async def test_suggestions_are_a_few_of_each_kind(hub: Database) -> None:
    async with hub.read() as conn:
        hits = await service.suggest(conn, None, "en")
        two = await service.suggest(conn, None, "en", limit=2)

    assert {hit.kind for hit in hits} >= {SearchKind.model, SearchKind.dataset, SearchKind.user}
    assert len([hit for hit in hits if hit.kind is SearchKind.model]) == 3
    assert list(two) == list(hits[:2])


@pytest.mark.parametrize("cursor", ["abc", "AAAA", "x" * 5000])
async def test_a_cursor_that_is_none_is_refused(hub: Database, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        await a_page(hub, "engine", cursor=cursor)
